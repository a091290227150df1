"""Making a connection, and saying why it could not be made without saying where to."""

from __future__ import annotations

import asyncio
import os
import ssl

from gateway.errors import ConnectFailed
from gateway.relay.connection import Connection

__all__ = ["connect"]


async def connect(connection: Connection, host: str, port: int, tls: ssl.SSLContext | None) -> None:
    """Connect; raises ConnectFailed. Whatever else ends it, cancelling included, leaves no socket open."""
    loop = asyncio.get_running_loop()
    try:
        await loop.create_connection(
            lambda: connection, host, port, ssl=tls, server_hostname=host if tls is not None else None
        )
        if not connection.usable():
            raise ConnectFailed("the engine closed a new connection at once")
    except TimeoutError:
        raise ConnectFailed("connecting to the engine failed: no answer") from None
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(f"connecting to the engine failed: {_plain(error)}") from error
    except BaseException:
        connection.abort()
        raise


def _plain(error: OSError | UnicodeError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "no TLS handshake"
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno > 0:
        return os.strerror(error.errno)
    return "its name does not resolve or none of its addresses answers"
