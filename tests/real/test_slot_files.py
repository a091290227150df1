"""Two conversations that take turns in one real slot: what is saved to the disk need not be read again."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.real.conftest import Launch
from tests.real.gateway_process import backend, serving

TEXT = "The gauge shows four bar; the valve at the far end is shut and its wheel does not turn. "


async def _share(url: str, turns: int = 4) -> tuple[float, float]:
    """The part of what could be cached that was, and the engine's seconds of reading."""
    found = possible = 0
    reading = 0.0
    said = {name: [{"role": "user", "content": f"{name}: " + TEXT * 60}] for name in ("Ada", "Grace")}
    before = dict.fromkeys(said, 0)
    async with aiohttp.ClientSession() as http:
        for _ in range(turns):
            for name, messages in said.items():
                body = {"model": "tiny", "messages": messages, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
                headers = {"x-session-id": name}
                async with http.post(f"{url}/v1/chat/completions", json=body, headers=headers) as reply:
                    assert reply.status == 200, await reply.text()
                    answer = await reply.json()
                usage = answer["usage"]
                possible += before[name]
                found += min(before[name], usage["prompt_tokens_details"]["cached_tokens"])
                if before[name]:
                    reading += answer["timings"]["prompt_ms"] / 1000.0
                before[name] = usage["prompt_tokens"] + usage["completion_tokens"]
                messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "."})
                messages.append({"role": "user", "content": TEXT * 3})
    return found / possible, reading


@pytest.mark.timeout(120)
async def test_what_lost_its_slot_comes_back_from_the_disk(llama: Launch, tmp_path: Path) -> None:
    shares = {}
    for save in ("false", "true"):
        folder = tmp_path / save
        folder.mkdir()
        flags = ("--cache-ram", "0", "--slot-save-path", str(folder))
        server = await llama("tiny", context=8192, slots=1, flags=flags)
        async with serving(folder, [backend("b1", server.url, slots=f"{{save: {save}}}")]) as gateway:
            shares[save], seconds = await _share(gateway.url)
            print(f"save {save}: cached {shares[save]:.1%} of what could be, {seconds:.2f} s of reading")
    assert shares["false"] < 0.1
    assert shares["true"] > 0.9
