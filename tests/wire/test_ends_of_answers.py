"""An answer that the engine gave up, or ended without a word why, is a failure on every surface."""

from __future__ import annotations

import pytest

from gateway.errors import StreamBroken
from gateway.wire.anthropic.stop_reason import finish_reason as of_messages
from gateway.wire.ollama.done_reason import finish_reason as of_ollama
from gateway.wire.responses.ending import finish_reason as of_responses
from tests.wire.told_by_chat import BODIES, DONE, TRANSLATED, chunk, streamed, whole

translated = pytest.mark.parametrize("surface", TRANSLATED)


@translated
@pytest.mark.parametrize("reason", ["abort", "error", "cancelled", "eviction", "Timeout"])
def test_s2_an_answer_that_the_engine_gave_up_is_no_success(surface: str, reason: str) -> None:
    with pytest.raises(StreamBroken):
        streamed(surface, chunk({"content": "par"}), chunk({}, reason), DONE)
    with pytest.raises(StreamBroken):
        whole(surface, {"content": "par"}, reason)


@translated
@pytest.mark.parametrize("reason", ["eos", "stop_sequence", "eos_token", "length"])
def test_engines_have_their_own_names_for_a_good_end(surface: str, reason: str) -> None:
    assert b"full" in streamed(surface, chunk({"content": "full"}), chunk({}, reason), DONE)
    assert "full" in str(whole(surface, {"content": "full"}, reason))


def test_chat_is_told_in_the_engines_own_words() -> None:
    events = chunk({"content": "par"}), chunk({}, "abort"), DONE
    assert streamed("chat", *events) == b"".join(events)
    assert whole("chat", {"content": "par"}, "abort")["choices"][0]["finish_reason"] == "abort"


def test_the_other_dialects_reasons_are_kept_where_they_mean_the_same() -> None:
    assert (of_messages("abort"), of_messages("new"), of_messages(None)) == ("abort", "stop", None)
    assert (of_ollama("error", calls=True), of_ollama("new", calls=False)) == ("error", "stop")
    assert of_responses({"status": "incomplete", "incomplete_details": {"reason": "cancelled"}}) == "cancelled"
    assert (of_responses({"status": "failed"}), of_responses({"status": "queued"})) == ("failed", None)


@pytest.mark.parametrize("surface", BODIES)
@pytest.mark.parametrize("events", [(DONE,), (chunk({"content": "part"}), DONE), (chunk({"role": "assistant"}), DONE)])
def test_s2_the_end_of_a_stream_without_a_reason_is_a_failure(surface: str, events: tuple[bytes, ...]) -> None:
    with pytest.raises(StreamBroken, match="without saying why"):
        streamed(surface, *events)


def test_each_choice_must_say_why_it_ended() -> None:
    second = b'data: {"choices":[{"index":1,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'
    with pytest.raises(StreamBroken, match="without saying why"):
        streamed("chat", chunk({"content": "a"}), second, chunk({}, "stop"), DONE, n=2)
