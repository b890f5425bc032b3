"""Where a password may go: to the host that is configured, by whatever name."""

from __future__ import annotations

import pytest

from collector.sources.jmx.rmi_source import is_same_host


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = {
        "broker-1": ["10.0.0.5", "fd00::5"],
        "broker-1.example": ["10.0.0.5"],
        "b2": ["10.0.0.6"],
    }

    def getaddrinfo(host: str, _: object) -> list[tuple[object, ...]]:
        if host not in fake and not host[0].isdigit():
            raise OSError("fake: no such name")
        return [(0, 0, 0, "", (one, 0)) for one in fake.get(host, [host])]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("127.0.0.1", "localhost"), ("127.0.0.2", "::1"), ("Nobody-Knows", "nobody-knows"),
        ("broker-1", "broker-1.example"), ("10.0.0.5", "broker-1"),
    ],
)  # fmt: skip
def test_one_host_has_many_names(one: str, other: str) -> None:
    assert is_same_host(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("127.0.0.1", "10.0.0.5"), ("broker-1", "b2"), ("nobody", "unknown"), ("localhost", "b2")],
)
def test_another_host_is_another(one: str, other: str) -> None:
    assert not is_same_host(one, other)
