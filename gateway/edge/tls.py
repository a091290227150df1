"""HTTPS on the public port."""

from __future__ import annotations

import ssl

from gateway.config.settings import Tls
from gateway.errors import ConfigError

__all__ = ["server_context"]


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context with this certificate, HTTP/1.1 only; raises ConfigError when the files can't be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"server.tls: the certificate or its key can't be used ({type(error).__name__})") from None
    return context
