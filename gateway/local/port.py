"""A loopback port that stays ours between two runs of a server."""

from __future__ import annotations

import socket

from gateway.errors import ConfigError

__all__ = ["reserve"]


def reserve(port: int) -> socket.socket:
    """A bound socket that never listens, on `port` or, for 0, a free one; raises ConfigError when it is taken.

    Thanks to SO_REUSEPORT a server of the same user can bind it too; the kernel gives it to nobody who asks for any
    free port. While the server is down, connections are refused, since this socket does not listen.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", port))
    except OSError as error:
        held.close()
        raise ConfigError(f"port {port} on 127.0.0.1 is taken") from error
    return held
