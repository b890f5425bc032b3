"""How long whoever is asked may take, and what is said when nothing came in time."""

from __future__ import annotations

from collector.errors import SourceTimeoutError


def no_answer(where: str, seconds: float) -> SourceTimeoutError:
    """The error to raise when the time is up.

    Args:
        where: What was asked.
        seconds: How long it might have taken.
    """
    return SourceTimeoutError(
        f"{where}: no answer within {seconds:g} s; is it overloaded, stopped or cut off?"
    )


def rmi_options(seconds: float) -> tuple[str, ...]:
    """Options of a JVM that bound each wait of RMI: to connect, for a handshake, for an answer."""
    timeout_ms = max(1, round(seconds * 1000))
    return (
        f"-Dsun.rmi.transport.tcp.responseTimeout={timeout_ms}",
        f"-Dsun.rmi.transport.tcp.handshakeTimeout={timeout_ms}",
        f"-Dsun.rmi.transport.proxy.connectTimeout={timeout_ms}",
    )
