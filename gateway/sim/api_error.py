"""Refusals of the emulated API, worded as vLLM 0.32 words them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = [
    "ApiError",
    "bad_value",
    "busy",
    "context_too_long",
    "from_decoding",
    "unknown_model",
    "wrong_media_type",
]


class ApiError(Exception):
    """An answer with a status of 400 or more in the OpenAI error shape."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None) -> None:
        """`kind` becomes the body's `type`."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param

    def body(self) -> bytes:
        """The JSON body."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}
        return msgspec.json.encode({"error": error})


def bad_value(message: str, param: str, value: object) -> ApiError:
    """A field whose type is right and whose value is not."""
    return ApiError(400, f"{message} (parameter={param}, value={value})", "BadRequestError", param)


def unknown_model(wanted: str, served: str) -> ApiError:
    """404 for a model that is not served here."""
    message = f"The model `{wanted}` does not exist. Valid aliases: {served}."
    return ApiError(404, message, "NotFoundError", "model")


def context_too_long(prompt: int, output: int | None, limit: int) -> ApiError:
    """400 for `prompt` tokens and `output` wanted ones on a window of `limit`, which is where vLLM stops counting."""
    if prompt >= limit or output is None:
        found = limit + 1
        message = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains at least {found} "
            "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the "
            "input prompt."
        )
    else:
        found = limit - output + 1
        message = (
            f"This model's maximum context length is {limit} tokens. However, you requested {output} output tokens and "
            f"your prompt contains at least {found} input tokens, for a total of at least {limit + 1} tokens. Please "
            "reduce the length of the input prompt or the number of requested output tokens."
        )
    return bad_value(message, "input_tokens", found)


def busy() -> ApiError:
    """503 of a server with a limit on its queue."""
    message = "The engine is currently busy and cannot accept new requests."
    return ApiError(503, f"{message} Please try again later or on a different instance.", "Service Unavailable")


def wrong_media_type() -> ApiError:
    """400 for a body that is not declared as JSON."""
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    return ApiError(400, message, "Bad Request")


_PLACE = r"(?: - at `\$\.?(?P<path>[^`]*)`)?$"
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`" + _PLACE)
_WRONG_TYPE = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`" + _PLACE)
_POSITION = re.compile(r"\(byte (\d+)\)")
_KINDS = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "array": "list",
    "object": "dictionary",
}


def from_decoding(error: msgspec.MsgspecError, body: bytes) -> ApiError:
    """400 for a body that did not decode."""
    text = str(error)
    entry: dict[str, object]
    if not isinstance(error, msgspec.ValidationError):
        position = _POSITION.search(text)
        loc = f"body.{position[1] if position else 0}"
        entry = {"type": "json_invalid", "loc": loc, "msg": "JSON decode error", "input": "<dict of 0 items>"}
        entry["ctx"] = {"error": "Expecting value"}
    elif missing := _MISSING.search(text):
        path = ".".join(part for part in (missing["path"], missing["field"]) if part)
        loc = f"body.{path}"
        entry = {"type": "missing", "loc": loc, "msg": "Field required", "input": _shown(_at(body, missing["path"]))}
    else:
        wrong = _WRONG_TYPE.search(text)
        path = (wrong["path"] or "") if wrong else ""
        wanted = wrong["wanted"].split(" | ")[0] if wrong else "valid"
        loc = f"body.{path}" if path else "body"
        message = f"Input should be a valid {_KINDS.get(wanted, wanted)}"
        parsing = wanted == "int" and wrong is not None and wrong["got"] == "str"
        if parsing:
            message += ", unable to parse string as an integer"
        kind = "int_parsing" if parsing else f"{wanted}_type"
        entry = {"type": kind, "loc": loc, "msg": message, "input": _shown(_at(body, path))}
    return ApiError(400, f"1 validation error:\n  {entry}", "Bad Request", loc)


def _at(body: bytes, path: str | None) -> Any:
    value = msgspec.json.decode(body)
    for step in (path or "").split("."):
        if not step:
            break
        if not isinstance(value, dict) or step not in value:
            return {}
        value = value[step]
    return value


def _shown(value: object) -> object:
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    return value
