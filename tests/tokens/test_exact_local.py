"""Local tokenizers: files as models bring them, chat templates as they are written, counts in a thread."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from gateway.tokens.chat_template import ChatTemplate, NotRendered
from gateway.tokens.exact_local import LocalCounts
from gateway.tokens.tokenizer_file import Count, Unusable, load_tokenizer
from gateway.wire.reading import read_request

CHATML = (
    "{{ bos_token }}{% if tools %}{{ '<|im_start|>system\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endif %}{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' "
    "+ message.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{% endif %}{% endif %}"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder whose tokenizer makes a token of each byte."""
    alphabet = {each: number for number, each in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab={**alphabet, "<s>": len(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", len(alphabet))])
    tokenizer.enable_truncation(16)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": CHATML}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def local() -> Iterator[LocalCounts]:
    counts = LocalCounts()
    yield counts
    counts.close()


async def counted(local: LocalCounts, surface: str, body: dict[str, Any]) -> Count | None:
    raw = json.dumps(body).encode()
    return await local.count("m", read_request(surface, raw), raw)


async def loaded(local: LocalCounts, path: Path) -> None:
    local.apply({"m": path})
    local._pool.submit(int).result()  # the one thread has read the file before
    assert local.knows("m")


async def test_a_chat_is_counted_as_its_template_renders_it(local: LocalCounts, folder: Path) -> None:
    await loaded(local, folder)
    rendered = "<s><|im_start|>user\nhé<|im_end|>\n<|im_start|>assistant\n"
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hé"}]}
    assert await counted(local, "chat", body) == Count(len(rendered.encode()))
    more = {**body, "chat_template_kwargs": {"enable_thinking": False}}
    assert await counted(local, "chat", more) == Count(len(rendered.encode()) + len("<think></think>"))
    tool = {"type": "function", "function": {"name": "f", "description": "é <b>"}}
    listed = f"<|im_start|>system\n{json.dumps(tool, ensure_ascii=False)}<|im_end|>\n"
    assert await counted(local, "chat", {**body, "tools": [tool]}) == Count(len((rendered + listed).encode()))


async def test_other_surfaces_are_counted_as_the_chat_that_they_amount_to(local: LocalCounts, folder: Path) -> None:
    await loaded(local, folder)
    chat = {"model": "m", "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]}
    same = await counted(local, "chat", chat)
    assert same is not None
    messages = {"model": "m", "max_tokens": 5, "system": "be brief", "messages": [{"role": "user", "content": "hi"}]}
    assert await counted(local, "messages", messages) == same
    assert await counted(local, "count_tokens", {**messages, "max_tokens": 5}) == same
    assert await counted(local, "responses", {"model": "m", "instructions": "be brief", "input": "hi"}) == same
    assert await counted(local, "ollama_chat", chat) == same


async def test_prompts_get_the_models_first_token(local: LocalCounts, folder: Path) -> None:
    await loaded(local, folder)
    assert await counted(local, "completions", {"model": "m", "prompt": "abcdefghijklmnopqrst"}) == Count(21)


async def test_what_a_tokenizer_knows_nothing_of_is_not_counted(local: LocalCounts, folder: Path) -> None:
    await loaded(local, folder)
    image = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
    assert await counted(local, "chat", {"model": "m", "messages": [{"role": "user", "content": [image]}]}) is None
    assert await counted(local, "completions", {"model": "m", "prompt": ["a", "b"]}) is None


async def test_a_file_that_cannot_be_used_leaves_the_model_unknown(local: LocalCounts, tmp_path: Path) -> None:
    local.apply({"m": tmp_path / "tokenizer.json"})
    local._pool.submit(int).result()
    assert not local.knows("m")
    local.apply({})
    assert not local.knows("m")


def test_without_a_template_the_wrapping_is_a_guess_and_said_to_be(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()
    count = load_tokenizer(folder / "tokenizer.json").chat({"messages": [{"role": "user", "content": "hallo"}]})
    assert count == Count(5 + 5 + 6, 11)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_vocabularies_of_tiktoken(tmp_path: Path, name: str) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b" ab", b"12"]
    file = tmp_path / f"{name}.tiktoken"
    file.write_bytes(b"\n".join(base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokens)))
    tokenizer = load_tokenizer(file)
    assert tokenizer.prompt("ab ab 12") == Count(4)
    assert tokenizer.prompt("<|endoftext|>") == Count(13)
    assert tokenizer.chat({"messages": [{"role": "user", "content": "ab"}]}) == Count(7, 6)


def test_the_cuts_are_those_of_tiktoken_itself() -> None:
    """Its own source is read for the expressions; its vocabularies are never fetched."""
    import inspect

    from tiktoken_ext import openai_public

    from gateway.tokens.tokenizer_file import _PATTERNS

    source = inspect.getsource(openai_public.o200k_base)
    own = tiktoken.Encoding("x", pat_str="x", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
    assert own.n_vocab == 256
    for alternative in _PATTERNS["o200k_base"].split("|\\p{N}{1,3}|")[0].split("(?i:'s|'t|'re|'ve|'m|'ll|'d)?"):
        assert alternative.lstrip("|") in source
    assert _PATTERNS["cl100k_base"] in inspect.getsource(openai_public.cl100k_base)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("tokenizer.json", b"{}", "is no tokenizer.json"),
        ("mine.tiktoken", b"", "named like no encoding"),
        ("o200k_base.tiktoken", b"a b c\n", "no vocabulary"),
        ("o200k_base.tiktoken", b"YQ== x\n", "no vocabulary"),
    ],
)
def test_what_is_no_tokenizer_is_said_plainly(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unusable, match=says):
        load_tokenizer(tmp_path / name)


def test_a_broken_template_is_said_plainly(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{% for x in %}")
    with pytest.raises(Unusable, match="not a chat template"):
        load_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(Unusable, match="no JSON"):
        load_tokenizer(folder)


def test_parts_are_joined_unless_the_template_walks_over_them() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}
    assert ChatTemplate("{{ messages[0].content }}", {}).render(body) == "a\nb"
    walking = "{% for m in messages %}{% for part in m.content %}[{{ part.text }}]{% endfor %}{% endfor %}"
    assert ChatTemplate(walking, {}).render(body) == "[a][b]"


def test_calls_come_with_their_arguments_read() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1, "é"]}'}}
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    template = "{{ messages[0].content }}{{ messages[0].tool_calls[0].function.arguments.a | tojson }}"
    assert ChatTemplate(template, {}).render(body) == '[1, "é"]'
    odd = {**call, "function": {"name": "f", "arguments": "not json"}}
    shown = ChatTemplate("{{ messages[0].tool_calls[0].function.arguments }}", {})
    assert shown.render({"messages": [{"role": "assistant", "tool_calls": [odd]}]}) == "not json"


@pytest.mark.parametrize(
    "source",
    ["{{ raise_exception('roles must alternate') }}", "{{ messages[7].content }}", "{{ messages[0].content + 5 }}",
     "{{ ''.__class__.__mro__ }}{{ messages.append(1) }}"],
)  # fmt: skip
def test_what_a_template_refuses_is_not_rendered(source: str) -> None:
    with pytest.raises(NotRendered):
        ChatTemplate(source, {}).render({"messages": [{"role": "user", "content": "x"}]})


def test_marks_of_generation_and_the_day_are_known() -> None:
    source = "{% generation %}{{ messages[0].content }}{% endgeneration %} {{ strftime_now('%Y') | length }}"
    assert ChatTemplate(source, {}).render({"messages": [{"role": "assistant", "content": "said"}]}) == "said 4"
