"""What a simulated run did to each request."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.sim.engine_model import Finished

__all__ = ["Outcome", "Simulation"]


@dataclass(slots=True)
class Outcome:
    """One request; moments are seconds of virtual time, None for what did not happen."""

    id: str
    arrived_at: float
    prompt_tokens: int
    output_tokens: int
    engine: str | None = None
    placed_at: float | None = None
    first_token_at: float | None = None
    finished_at: float | None = None
    finish_reason: str | None = None
    refused: str | None = None
    """The policy's reason for turning it down."""
    left: bool = False
    """True when the client ran out of patience."""
    lost: int = 0
    """Crashes it went through."""
    cut: bool = False
    """The engine's window was too short for its whole answer."""
    cached_tokens: int = 0
    preemptions: int = 0

    @property
    def under_way(self) -> bool:
        """True while an engine has it."""
        return self.placed_at is not None and self.finished_at is None and not self.left

    def end(self, now: float, finished: Finished) -> None:
        """The engine is done with it."""
        self.finished_at = now
        self.finish_reason = finished.reason
        self.cached_tokens = finished.cached_tokens
        self.preemptions = finished.preemptions

    def lose(self) -> None:
        """Its engine crashed: back to waiting, as if never placed."""
        self.withdraw()
        self.lost += 1

    def withdraw(self) -> None:
        """Taken back from its engine: back to waiting, as if never placed."""
        self.engine = self.placed_at = self.first_token_at = None

    @property
    def ttft_s(self) -> float | None:
        """Seconds from arrival to the first token."""
        return None if self.first_token_at is None else self.first_token_at - self.arrived_at

    @property
    def tpot_s(self) -> float | None:
        """Mean seconds a token after the first; None for answers of one token."""
        if self.first_token_at is None or self.finished_at is None or self.output_tokens < 2:
            return None
        return (self.finished_at - self.first_token_at) / (self.output_tokens - 1)

    @property
    def e2e_s(self) -> float | None:
        """Seconds from arrival to the last token."""
        return None if self.finished_at is None else self.finished_at - self.arrived_at

    def good(self, ttft_s: float, prompt_rate: float, tpot_s: float) -> bool:
        """Whole, its first token within `ttft_s` and a second for every `prompt_rate` tokens of prompt, and in pace."""
        if self.ttft_s is None or self.cut or self.finish_reason not in ("stop", "length"):
            return False
        return self.ttft_s <= ttft_s + self.prompt_tokens / prompt_rate and (self.tpot_s or 0.0) <= tpot_s


@dataclass(frozen=True, slots=True)
class Simulation:
    """A whole run."""

    outcomes: tuple[Outcome, ...]
    """In order of arrival."""
    makespan_s: float
    """Moment of the last token."""

    def goodput(self, *, ttft_s: float = 3.0, prompt_rate: float = 2000.0, tpot_s: float = 0.1) -> float:
        """Share of the requests answered in full with TTFT <= ttft_s + prompt/prompt_rate and mean TPOT <= tpot_s."""
        good = sum(one.good(ttft_s, prompt_rate, tpot_s) for one in self.outcomes)
        return good / len(self.outcomes) if self.outcomes else 1.0
