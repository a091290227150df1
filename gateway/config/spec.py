"""The base of everything that stands in the file: unknown keys refused, nothing changed after it was read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo

from gateway.config.sizes import Unreadable

__all__ = ["Address", "FilePath", "Name", "Spec", "some"]


class Spec(BaseModel):
    """A mapping of the file. The docstring under each field is its text in the JSON Schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)


Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f\x7f]+$")]
"""A name without spaces, up to 200 characters."""


def _from_base(path: Path, info: ValidationInfo) -> Path:
    return info.context["base"] / path if info.context else path


FilePath = Annotated[Path, AfterValidator(_from_base), Field(examples=["/etc/kvgate/cert.pem"])]
"""A path; a relative one starts at the directory of the file that names it."""


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not bracketed) or any(c.isspace() for c in host):
        raise Unreadable(
            "is not an address to listen on", "write HOST:PORT like 127.0.0.1:8080, 0.0.0.0:8080, or [::]:8080"
        )
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise Unreadable("has no port from 0 to 65535", "write HOST:PORT like 127.0.0.1:8080")
    return text


Address = Annotated[
    str, StringConstraints(max_length=300), AfterValidator(_address), Field(examples=["127.0.0.1:8080"])
]
"""`HOST:PORT`; the host in brackets when it is IPv6."""


def some(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items; Unreadable when there are none. A length limit would count broken items as missing ones."""
    if not items:
        raise Unreadable("is an empty list", "the least is one entry")
    return items
