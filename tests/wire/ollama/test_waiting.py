"""Lines that keep a client of Ollama's waiting are whole ones to its SDKs, and change nothing of the answer."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from ollama import ChatResponse, GenerateResponse

from gateway.wire.dialect import DIALECTS


@pytest.mark.parametrize(("dialect", "model"), [("ollama_chat", ChatResponse), ("ollama_generate", GenerateResponse)])
def test_a_line_that_says_nothing(dialect: str, model: type[ChatResponse | GenerateResponse]) -> None:
    line = DIALECTS[dialect].keepalive
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    told = json.loads(line)
    assert {"model", "created_at", "done"} < set(told)
    assert datetime.fromisoformat(told["created_at"]).tzinfo is not None
    read = model.model_validate(told)
    assert read.done is False
    assert not (read.response if isinstance(read, GenerateResponse) else read.message.content)
