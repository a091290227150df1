"""Tokenizers from files: a model's folder or tokenizer.json as Hugging Face has it, or a vocabulary of tiktoken's.

Nothing is ever fetched. The libraries (`tokenizers`, `tiktoken`, `jinja2`) are read when a file asks for them: they are
the extra `exact` of this package.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.tokens.chat_template import ChatTemplate, NotRendered

__all__ = ["Count", "TokenizerFile", "Unusable", "load_tokenizer"]

_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")
_MESSAGE, _TOOL, _REQUEST = 5, 12, 6
"""Tokens that chat templates usually wrap around a message, a tool and a request, where there is no template."""
_OPENAI_MESSAGE, _OPENAI_REQUEST = 3, 3
"""The same of OpenAI's chat models (OpenAI cookbook, "How to count tokens with tiktoken")."""
_LETTERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS: dict[str, str] = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ),
    "o200k_base": "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_LETTERS[0]}*{_LETTERS[1]}+{_CONTRACTION}",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_LETTERS[0]}+{_LETTERS[1]}*{_CONTRACTION}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
}
"""How tiktoken's encodings cut text before they look up pieces, by the name of their vocabulary file."""


class Unusable(Exception):
    """A tokenizer file that can't be used; the message says why, for the operator."""


class Count(NamedTuple):
    """Tokens of a prompt, and how many more it may have where the template is not known; 0: exact."""

    tokens: int
    spread: int = 0


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A tokenizer and, where the model has one, its chat template. Safe to use from several threads.

    length: tokens of a text, with the model's own first token where the flag says so. wraps: tokens around a message, a
    tool and a request where there is no template; known: exactly so.
    """

    length: Callable[[str, bool], int]
    template: ChatTemplate | None
    wraps: tuple[int, int, int] = (_MESSAGE, _TOOL, _REQUEST)

    def chat(self, body: Mapping[str, Any]) -> Count | None:
        """Tokens of a body of /v1/chat/completions; None when it can't be rendered."""
        if self.template is not None:
            try:
                return Count(self.length(self.template.render(body), False))
            except NotRendered:
                return None
        messages, tools = body.get("messages") or (), body.get("tools") or ()
        texts = [msgspec.json.encode(tool).decode() for tool in tools]
        for message in messages:
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            texts += [part if isinstance(part, str) else part.get("text") or "" for part in parts if part]
            texts += [msgspec.json.encode(call).decode() for call in message.get("tool_calls") or ()]
        message_wrap, tool_wrap, request_wrap = self.wraps
        wrapped = message_wrap * len(messages) + tool_wrap * len(tools)
        tokens = sum(self.length(text, False) for text in texts) + wrapped + request_wrap
        return Count(tokens, wrapped + request_wrap)

    def prompt(self, text: str) -> Count:
        """Tokens of the prompt of a body of /v1/completions."""
        return Count(self.length(text, True))


def load_tokenizer(path: Path) -> TokenizerFile:
    """Read a tokenizer. Takes a second for a large vocabulary. Raises Unusable."""
    try:
        if path.suffix == ".tiktoken":
            return TokenizerFile(_tiktoken(path), None, (_OPENAI_MESSAGE, _TOOL, _OPENAI_REQUEST))
        file = path / "tokenizer.json" if path.is_dir() else path
        return TokenizerFile(_hugging_face(file), _template(file.parent))
    except OSError as error:
        raise Unusable(f"can't be read: {error.strerror or error}") from None
    except ImportError as error:
        raise Unusable(f"needs the package {error.name}: pip install 'kvgate[exact]'") from None
    except NotRendered as error:
        raise Unusable(str(error)) from None


def _hugging_face(file: Path) -> Callable[[str, bool], int]:
    from tokenizers import Tokenizer

    with file.open("rb"):  # for the system's own word on a file that can't be read
        pass
    try:
        # Not from_str or from_buffer: these hold the interpreter while they parse, 2 s for a large vocabulary.
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise Unusable(f"is no tokenizer.json: {str(error)[:200]}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def length(text: str, special: bool) -> int:
        return len(tokenizer.encode(text, add_special_tokens=special))

    return length


def _tiktoken(file: Path) -> Callable[[str, bool], int]:
    import tiktoken

    pattern = _PATTERNS.get(file.stem)
    if pattern is None:
        raise Unusable(f"is named like no encoding that is known: one of {', '.join(_PATTERNS)}")
    ranks: dict[bytes, int] = {}
    try:
        for line in file.read_bytes().splitlines():
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except ValueError:
        raise Unusable("is no vocabulary of tiktoken's: lines of base64 and a number") from None
    encoding = tiktoken.Encoding(file.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def length(text: str, special: bool) -> int:
        del special
        return len(encoding.encode_ordinary(text))

    return length


def _template(folder: Path) -> ChatTemplate | None:
    """The chat template beside a tokenizer.json: a file of its own, or in tokenizer_config.json."""
    config = folder / "tokenizer_config.json"
    told: dict[str, Any] = {}
    if config.is_file():
        try:
            read = msgspec.json.decode(config.read_bytes())
        except msgspec.MsgspecError:
            raise Unusable("has a tokenizer_config.json beside it that is no JSON") from None
        told = read if isinstance(read, dict) else {}
    tokens = {name: text for name in _SPECIAL if (text := _special(told.get(name))) is not None}
    file = folder / "chat_template.jinja"
    source: Any = file.read_text(encoding="utf-8") if file.is_file() else told.get("chat_template")
    if isinstance(source, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in source if isinstance(each, dict)}
        source = named.get("default")
    return ChatTemplate(source, tokens) if isinstance(source, str) else None


def _special(token: Any) -> str | None:
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None
