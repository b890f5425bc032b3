"""Whether two addresses are one host's: where a password may go."""

from __future__ import annotations

import socket
from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this host's own, by its text alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.casefold() in ("localhost", "localhost.localdomain")


def is_same_host(one: str, other: str) -> bool:
    """Whether two names or addresses mean one host; asks the resolver where they differ."""
    if one.casefold() == other.casefold() or (is_loopback(one) and is_loopback(other)):
        return True
    return not _addresses(one).isdisjoint(_addresses(other))


def _addresses(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()
