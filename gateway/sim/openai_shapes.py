"""Answers of the emulated API, key for key in the order of vLLM 0.32.

Stream chunks are built from strings: their text is plain ASCII, and a chunk must cost next to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.sim.answer import Answer

__all__ = ["DONE", "FINGERPRINT", "VERSION", "Chunks", "Usage", "model_list", "whole_answer"]

VERSION = "0.32.0"
FINGERPRINT = f"vllm-{VERSION}-emulated"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer."""

    prompt: int
    completion: int
    cached: int
    created: int
    """Prompt tokens that this request put into the prefix cache."""

    def counts(self) -> dict[str, Any]:
        """The three sums."""
        return {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
        }

    def details(self, chat: bool) -> dict[str, Any]:
        """The sums with the share of the prefix cache, as a stream's last chunk has them."""
        found: dict[str, Any] = {"cached_tokens": self.cached}
        if chat:
            found["created_cache_tokens"] = self.created
        return self.counts() | {"prompt_tokens_details": found}


def whole_answer(*, ident: str, created: int, model: str, chat: bool, answers: Sequence[Answer], usage: Usage) -> bytes:
    """Body of an answer that is not streamed."""
    choices = []
    for index, answer in enumerate(answers):
        end = {"finish_reason": answer.finish_reason, "stop_reason": answer.stop_reason, "token_ids": None}
        if chat:
            message = {"role": "assistant", "content": answer.visible, "refusal": None, "annotations": None}
            message |= {"audio": None, "function_call": None, "reasoning": None}
            choices.append({"index": index, "message": message, "logprobs": None} | end | {"routed_experts": None})
        else:
            nulls = {"prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
            choices.append({"index": index, "text": answer.visible, "logprobs": None} | end | nulls)
    created_cache = usage.created if chat else None
    details = {"cached_tokens": usage.cached, "created_cache_tokens": created_cache, "multimodal_tokens": None}
    body: dict[str, Any] = {
        "id": ident,
        "object": "chat.completion" if chat else "text_completion",
        "created": created,
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage.counts() | {"prompt_tokens_details": details, "completion_tokens_details": None},
    }
    if chat:
        body |= {"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None}
    return msgspec.json.encode(body | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None})


def model_list(model: str, max_model_len: int, created: int) -> bytes:
    """Body of /v1/models."""
    permission = {"id": f"modelperm-{model}", "object": "model_permission", "created": created}
    permission |= {"allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True}
    permission |= {"allow_search_indices": False, "allow_view": True, "allow_fine_tuning": False}
    permission |= {"organization": "*", "group": None, "is_blocking": False}
    card = {"id": model, "object": "model", "created": created, "owned_by": "vllm", "root": model, "parent": None}
    card |= {"max_model_len": max_model_len, "permission": [permission]}
    return msgspec.json.encode({"object": "list", "data": [card]})


class Chunks:
    """Writes the events of one stream."""

    __slots__ = ("_chat", "_fingerprint", "_head")

    def __init__(self, *, ident: str, created: int, model: str, chat: bool, include_usage: bool) -> None:
        """Without `include_usage` the fingerprint rides on the chunks that end a choice."""
        kind = "chat.completion.chunk" if chat else "text_completion"
        names = f'"id":{json.dumps(ident)},"object":"{kind}","created":{created},"model":{json.dumps(model)}'
        self._head = f'data: {{{names},"choices":['
        self._chat = chat
        self._fingerprint = "" if include_usage else f',"system_fingerprint":"{FINGERPRINT}"'

    def role(self, index: int, usage: Usage | None, prompt: str = "null") -> bytes:
        """First chunk of a chat choice; `prompt`: its token ids, where they were asked for."""
        choice = f'{{"index":{index},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}'
        tail = f',"prompt_token_ids":{prompt},"prompt_text":null'
        return f"{self._head}{choice}]{_running(usage)}{tail}}}\n\n".encode()

    def piece(
        self,
        index: int,
        text: str,
        answer: Answer | None,
        usage: Usage | None,
        ids: str = "null",
        prompt: str = "null",
    ) -> bytes:
        """A piece of text; with `answer`, the last one of its choice. `usage` where every chunk is to carry it.

        `ids` of its tokens, and of the prompt's in the first chunk of a text completion, where they were asked for.
        """
        reason = "null" if answer is None else f'"{answer.finish_reason}"'
        stop = "null" if answer is None else json.dumps(answer.stop_reason)
        if self._chat:
            delta = f'{{"content":"{text}"}}' if text else "{}"
            end = "" if answer is None else f'"stop_reason":{stop},'
            choice = f'"delta":{delta},"logprobs":null,"finish_reason":{reason},{end}"token_ids":{ids}'
        else:
            choice = f'"text":"{text}","logprobs":null,"finish_reason":{reason},"stop_reason":{stop}'
            choice += f',"prompt_token_ids":{prompt},"token_ids":{ids}'
        tail = "" if answer is None else self._fingerprint
        return f'{self._head}{{"index":{index},{choice}}}]{_running(usage)}{tail}}}\n\n'.encode()

    def usage(self, usage: Usage) -> bytes:
        """The chunk without choices at the end."""
        tail = f',"system_fingerprint":"{FINGERPRINT}"'
        return f'{self._head}],"usage":{_compact(usage.details(self._chat))}{tail}}}\n\n'.encode()


def _running(usage: Usage | None) -> str:
    return "" if usage is None else f',"usage":{_compact(usage.counts() | {"completion_tokens_details": None})}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
