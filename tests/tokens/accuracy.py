"""How far token estimates are from real tokenizers: `python -m tests.tokens.accuracy [--json] [--requests N]`.

Cold: the first request of a client nobody has seen. Warm: after 50 requests of the client. Anchored: the later turns of
conversations, rendered by each model's chat template. Errors are relative, in per cent of the exact count.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gateway.core.estimators.prompt_tokens import PromptTokenEstimator, Tier
from gateway.tokens.measure import measure
from tests.clients.captures import RECORDED
from tests.tokens.corpus import KINDS, Asked, captured, conversation, request
from tests.tokens.tokenizers import FAMILIES, Family, tokens_of

__all__ = ["Errors", "anchored", "cold_and_warm", "main"]

TAUGHT = 50
"""Requests of a client before it counts as known."""
_SALT = b"accuracy"


@dataclass(slots=True)
class Errors:
    """Relative errors of estimates, and how many exact counts were no higher than what they promised."""

    errors: list[float] = field(default_factory=list)
    covered: int = 0
    wrongly_refused: int = 0

    def add(self, estimate: int, high: int, least: int, exact: int) -> None:
        self.errors.append(abs(estimate - exact) / exact)
        self.covered += exact <= high
        self.wrongly_refused += least > exact

    def merge(self, others: Iterable[Errors]) -> Errors:
        for other in others:
            self.errors += other.errors
            self.covered += other.covered
            self.wrongly_refused += other.wrongly_refused
        return self

    def quantile(self, q: float) -> float:
        """In per cent."""
        ranked = sorted(self.errors)
        return 100.0 * ranked[min(len(ranked) - 1, int(q * len(ranked)))] if ranked else 0.0

    @property
    def coverage(self) -> float:
        """Share of exact counts within `high`, in per cent."""
        return 100.0 * self.covered / max(1, len(self.errors))


def _ask(estimator: PromptTokenEstimator, family: Family, client: str, asked: Asked, into: Errors) -> None:
    measured = measure(asked.surface, asked.body, _SALT)
    exact = tokens_of(family, family.render(asked.chat))
    estimate = estimator.estimate(family.model, client, measured.counts)
    into.add(estimate.tokens, estimate.high, estimator.least(measured.counts), exact)
    estimator.learn(family.model, client, measured.counts, exact)


def cold_and_warm(family: Family, kind: str, requests: int, seed: int = 1) -> tuple[Errors, Errors]:
    """Requests of one kind: each as the first of its client, and `requests` of them after the client is known."""
    rng, cold, warm, taught = random.Random(f"{seed} {kind}"), Errors(), Errors(), Errors()
    asked = [request(kind, rng) for _ in range(TAUGHT + requests)]
    for each in asked[:requests]:
        _ask(PromptTokenEstimator(), family, kind, each, cold)
    estimator = PromptTokenEstimator()
    for i, each in enumerate(asked):
        _ask(estimator, family, kind, each, taught if i < TAUGHT else warm)
    return cold, warm


def anchored(family: Family, conversations: int, turns: int = 10, seed: int = 2) -> Errors:
    """Later turns of conversations with one client, half of them with reasoning that comes back."""
    rng, estimator, found = random.Random(seed), PromptTokenEstimator(), Errors()
    for i in range(conversations):
        talk = conversation(rng, turns, thinking=i % 2 == 1, count=lambda text: tokens_of(family, text))
        for asked, answer in talk:
            measured = measure(asked.surface, asked.body, _SALT)
            exact = tokens_of(family, family.render(asked.chat))
            estimate = estimator.estimate(family.model, "agent", measured.counts, measured.chain)
            if estimate.tier == Tier.ANCHORED:
                found.add(estimate.tokens, estimate.high, estimator.least(measured.counts), exact)
            estimator.learn(family.model, "agent", measured.counts, exact, measured.chain, answer)
    return found


def _row(table: Table, name: str, *errors: Errors) -> None:
    cells = [f"{e.quantile(0.5):.1f} / {e.quantile(0.95):.1f}   {e.coverage:.0f}" if e.errors else "" for e in errors]
    table.add_row(name, *cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.tokens.accuracy", description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures for programs")
    parser.add_argument("--requests", type=int, default=20, help="requests of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--captures", type=Path, default=RECORDED, help="a folder of other captures")
    options = parser.parse_args(arguments)
    by_kind = {kind: (Errors(), Errors()) for kind in KINDS}
    by_family: dict[str, tuple[Errors, Errors, Errors]] = {}
    for family in FAMILIES:
        mine = Errors(), Errors()
        for kind in KINDS:
            for found, all_kinds, all_mine in zip(
                cold_and_warm(family, kind, options.requests, options.seed), by_kind[kind], mine, strict=True
            ):
                all_kinds.merge([found])
                all_mine.merge([found])
        by_family[family.name] = (*mine, anchored(family, options.requests, seed=options.seed + 1))
    every = Errors()
    for family in FAMILIES:
        for asked in captured(options.captures):
            _ask(PromptTokenEstimator(), family, asked.client, asked, every)
    by_kind["all clients, cold"] = (every, Errors())
    total = [Errors().merge(each[i] for each in by_family.values()) for i in range(3)]
    if options.json:
        figures = {name: [asdict(e) | {"errors": [e.quantile(0.5), e.quantile(0.95)]} for e in each]
                   for name, each in (by_kind | by_family | {"all": tuple(total)}).items()}  # fmt: skip
        json.dump(figures, sys.stdout, indent=1)
        return 0
    table = Table(
        "",
        "cold",
        f"after {TAUGHT} requests",
        "anchored turns",
        title="error of prompt tokens, median / 95 % and coverage of the upper bound, %",
    )
    for name, each in by_kind.items():
        _row(table, name, *each)
    table.add_section()
    for family_name, figures3 in by_family.items():
        _row(table, family_name, *figures3)
    table.add_section()
    _row(table, "all", *total)
    Console(width=120).print(table)
    print(f"floors above the exact count: {sum(e.wrongly_refused for e in total)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
