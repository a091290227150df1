"""Errors in the OpenAI dialect, both ways: ours as bytes, an engine's as one flat mapping."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import GatewayError

__all__ = ["error_event", "error_in", "openai_error", "upstream_error"]


def _fields(err: GatewayError) -> dict[str, Any]:
    error: dict[str, Any] = {"message": err.message, "type": err.type, "param": err.param, "code": err.code}
    if err.reason is not None:
        error["reason"] = str(err.reason)
    if err.decision_id is not None:
        error["decision_id"] = err.decision_id
    return error


def openai_error(err: GatewayError) -> bytes:
    """The JSON body of an error answer: `{"error": {message, type, param, code, reason?, decision_id?}}`."""
    return msgspec.json.encode({"error": _fields(err)})


def error_event(err: GatewayError) -> bytes:
    """The same as one server-sent event. No success mark (`[DONE]`) may follow it."""
    return b"data: " + openai_error(err) + b"\n\n"


def error_in(payload: object) -> dict[str, Any] | None:
    """The error that a decoded answer or chunk carries, or None when it is no error.

    Knows `{"error": {...}}` and `{"error": "text"}` (OpenAI, llama.cpp, vLLM, SGLang, Ollama), `{"object": "error",
    "message": ...}` (older vLLM and SGLang) and `{"detail": ...}` (FastAPI). Always has `message`.
    """
    if not isinstance(payload, dict):
        return None
    error = payload.get("error")
    if isinstance(error, dict):
        return {**error, "message": _text(error.get("message"))}
    if isinstance(error, str) and error:
        return {"message": error}
    if payload.get("object") == "error" or payload.get("type") == "error":
        return {**payload, "message": _text(payload.get("message"))}
    if "detail" in payload and "choices" not in payload:
        return {"message": _text(payload["detail"])}
    return None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def upstream_error(status: int, body: bytes) -> dict[str, Any] | None:
    """The error in an engine's whole answer, or the bare error of an event, with `code` set to `status` if it has none.

    None when the body is not JSON or is no error (a proxy's HTML or plain text, for one).
    """
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    error = error_in(payload)
    if error is None and isinstance(payload, dict) and isinstance(payload.get("message"), str):
        error = dict(payload)
    if error is not None and error.get("code") is None:
        error["code"] = status
    return error
