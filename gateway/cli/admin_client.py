"""Asking a running gateway's admin port, as commands do that look at one."""

from __future__ import annotations

import argparse
import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

__all__ = ["AdminClient", "NoAnswer", "add_admin_option"]

_ADMIN = "http://127.0.0.1:9090"
_TIMEOUT_S = 5.0


class NoAnswer(Exception):
    """There was nobody to ask, or it is no admin port; the message says so in a sentence."""


def add_admin_option(parser: argparse.ArgumentParser | argparse._MutuallyExclusiveGroup) -> None:
    """Declare `--admin URL`."""
    parser.add_argument("--admin", metavar="URL", default=_ADMIN, help=f"admin port of the gateway (default {_ADMIN})")


class AdminClient:
    """One gateway's admin port at `url`. `command`: who asks. Raises NoAnswer when that is no http URL."""

    def __init__(self, url: str, command: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise NoAnswer(f"--admin takes an http:// or https:// URL, not {url!r}")
        self.url = url
        self._base = url.rstrip("/")
        # Asks directly, whatever proxy the environment names. The header tells a program from a visited page.
        self._headers = {"x-kvgate-admin": command}
        self._opener = build_opener(ProxyHandler({}))

    def get(self, path: str, method: str = "GET") -> tuple[int, Any]:
        """Status and JSON body, None where there is none. Blocks for seconds; raises NoAnswer when nobody answers."""
        try:
            request = Request(f"{self._base}{path}", headers=self._headers, method=method)
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return answer.status, _json(answer.read())
        except HTTPError as err:
            with err:
                return err.code, _json(err.read())
        except (OSError, ValueError, HTTPException) as err:  # nobody, or no such thing as this URL
            reason = getattr(err, "reason", None) or err
            said = getattr(reason, "strerror", None) or str(reason) or type(err).__name__
            raise NoAnswer(
                f"no gateway answers at {self._base} ({said.lower()}); is it running, and is this its admin port? See "
                "--admin"
            ) from None

    def refused(self, status: int, body: Any) -> NoAnswer:
        """What to say of an answer that no admin port gives, or that says why it won't tell."""
        error = body.get("error") if status == 403 and isinstance(body, dict) else None
        said = error.get("message") if isinstance(error, dict) else None
        return NoAnswer(
            said or f"{self.url} is not a gateway's admin port (`server.admin` in its file, 9090 by default)"
        )


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
