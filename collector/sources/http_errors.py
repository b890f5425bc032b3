"""What an HTTP client's exception means for us, in one line."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

import httpx

from collector.errors import SourceError, SourceRefusedError
from collector.sources.timeouts import no_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
)
"""How OpenSSL, by its version, says that an answer does not begin as TLS does."""


def http_error(where: str, error: httpx.HTTPError, seconds: float) -> SourceError:
    """The error to raise; its text names the place and never a credential.

    Args:
        where: What was asked.
        error: What the client raised.
        seconds: How long the call might have taken.
    """
    if isinstance(error, httpx.TimeoutException):
        return no_answer(where, seconds)
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NO_TLS:
                return SourceRefusedError(
                    f"{where}: it does not speak TLS there; is its URL an http:// one?"
                )
            reason = getattr(cause, "verify_message", "") or cause.reason or "no reason given"
            return SourceRefusedError(
                f"{where}: the TLS handshake failed ({reason}); does ca_file fit, and the name?"
            )
        if isinstance(cause, socket.gaierror):
            return SourceRefusedError(
                f"{where}: the host name cannot be resolved; is it spelt right?"
            )
    if isinstance(error, httpx.ConnectError):
        return SourceRefusedError(
            f"{where}: nobody listens there; is it up, and is its port right?"
        )
    return SourceError(
        f"{where}: the connection broke, or it does not speak HTTP (does it want https://?)"
        f" ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
