"""What of a request's head goes further: an allow-list for engines, and no credential at all."""

from __future__ import annotations

from gateway.wire.inbound import forwarded
from tests.edge.conftest import SECRET, Opener
from tests.edge.wire_client import request

MESSAGES = "/v1/messages"


async def test_a4_versions_features_and_a_trace_go_to_engines_and_nothing_else(open_door: Opener) -> None:
    door = await open_door(keys=True)
    client = await door.connect()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    head = request(
        "POST",
        MESSAGES,
        b"",
        authorization=f"Bearer {SECRET}",
        x_api_key=SECRET,
        api_key=SECRET,
        x_goog_api_key=SECRET,
        cookie="session=1",
        proxy_authorization="Basic abc",
        anthropic_version="2023-06-01",
        anthropic_beta="one-2025",
        openai_beta="responses=v1",
        traceparent=trace,
        tracestate="a=1",
        x_forwarded_for="1.2.3.4",
        forwarded="for=1.2.3.4",
        x_upstream_url="http://127.0.0.1:1",
        x_api_base="http://127.0.0.1:1",
        x_request_id="same",
        user_agent="any",
    ).replace(b"\r\n\r\n", b"\r\nAnthropic-Beta: two-2025\r\n\r\n")
    await client.send(head)
    assert (await client.reply()).status == 200
    inbound = door.gateway.seen[0]
    assert dict(inbound.forward) == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2025, two-2025",
        "openai-beta": "responses=v1",
        "traceparent": trace,
        "tracestate": "a=1",
    }
    assert SECRET not in str(inbound.headers) + str(inbound.forward) + repr(inbound)
    assert not {"cookie", "proxy-authorization"} & inbound.headers.keys()
    assert inbound.request_id == "same"


async def test_b2_a_form_keeps_its_boundary(open_door: Opener) -> None:
    door = await open_door()
    client = await door.connect()
    form = b'--AbC\r\ncontent-disposition: form-data; name="model"\r\n\r\nsmall\r\n--AbC--\r\n'
    kind = 'multipart/form-data; boundary="AbC"'
    assert (await client.request("POST", "/v1/audio/transcriptions", form, content_type=kind)).status == 200
    inbound = door.gateway.seen[0]
    assert (inbound.surface, inbound.content_type, inbound.body) == ("transcriptions", kind, form)
    await client.request("POST", "/v1/embeddings", b"{}")
    assert door.gateway.seen[1].content_type == "application/json"


def test_a_value_that_is_not_plain_text_stays_here() -> None:
    assert forwarded({"anthropic-beta": "é", "traceparent": "a\tb", "tracestate": "", "openai-beta": "x"}) == (
        ("openai-beta", "x"),
    )
