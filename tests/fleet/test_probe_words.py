"""Why a probe failed, in words for people, without the address."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from gateway.fleet.probing import _plain

_KEY: Any = SimpleNamespace(host="secret.example", port=1, is_ssl=False, ssl=True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (aiohttp.ClientConnectorDNSError(_KEY, socket.gaierror(-2, "Name or service not known")), "host name"),
        (aiohttp.ClientConnectorCertificateError(_KEY, ValueError("x")), "certificate"),
        (aiohttp.ServerTimeoutError("http://secret.example"), "in time"),
        (aiohttp.ServerDisconnectedError(), "closed the connection"),
        (aiohttp.ClientPayloadError("http://secret.example"), "cut"),
        (ConnectionRefusedError(111, "x"), "refused"),
    ],
)
def test_words(error: BaseException, words: str) -> None:
    told = _plain(error)
    assert words in told
    assert "secret" not in told
    assert "Error" not in told
