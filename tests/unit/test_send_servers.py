"""Mail servers and chats that end a call oddly: what was accepted is never sent again."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from lakehouse.errors import SendError
from lakehouse.report.send import delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TO = ("a@example.org", "b@example.org")
LETTER = delivery.Letter("r@example.org", TO, b"Subject: x\r\n\r\nx\r\n")


class FakeServer:
    """A server of one connection at a time, on a free port; ``talk`` says what it does."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._talk = talk
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.calls = 0

    def run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.calls += 1
                with connection, suppress(OSError):
                    self._talk(connection)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def served(talk: Callable[[socket.socket], None]) -> Iterator[FakeServer]:
    server = FakeServer(talk)
    threading.Thread(target=server.run, daemon=True).start()
    try:
        yield server
    finally:
        server.close()


def smtp(
    on_quit: bytes | None, refused: str = "", after_data: bytes = b"250 2.0.0 queued\r\n"
) -> Callable[[socket.socket], None]:
    """Take a mail and answer QUIT with some bytes; None: hang up without an answer."""

    def talk(connection: socket.socket) -> None:
        lines = connection.makefile("rb")
        connection.sendall(b"220 hello\r\n")
        for line in lines:
            command = line.split()[0].upper()
            if command == b"DATA":
                connection.sendall(b"354 go on\r\n")
                while lines.readline() != b".\r\n":
                    pass
                if not after_data:
                    return
                connection.sendall(after_data)
            elif command == b"QUIT":
                if on_quit is not None:
                    connection.sendall(on_quit)
                return
            elif refused and refused.encode() in line:
                connection.sendall(b"550 no such\r\n")
            else:
                connection.sendall(b"250 ok\r\n")

    return talk


def sent(port: int) -> str:
    to = delivery.Mail(
        "127.0.0.1", "r@example.org", TO, security="none", port=port, timeout_seconds=60
    )
    return delivery.deliver(LETTER, to)


@pytest.mark.parametrize(
    "answer",
    [
        b"221 bye\r\n", b"250 bye\r\n", b"421 4.4.2 timeout\r\n", b"554 no\r\n", b"garbage\r\n",
        b"221-never ends", b"\xff\x00\r\n", b"x" * 100_000, b"\r\n", b"", None,
    ],
)  # fmt: skip
def test_any_answer_to_quit_is_no_error(answer: bytes | None) -> None:
    with served(smtp(answer)) as server:
        assert sent(server.port) == ""
    assert server.calls == 1


def test_silence_after_quit_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_QUIT_SECONDS", 0.05)
    done = threading.Event()

    def talk(connection: socket.socket) -> None:
        with suppress(OSError):
            smtp(b"")(connection)
        done.wait(60)

    with served(talk) as server:
        assert sent(server.port) == ""
        done.set()


def test_refused_recipient_is_returned_and_no_error() -> None:
    with served(smtp(b"221 bye\r\n", refused="b@example.org")) as server:
        assert sent(server.port) == "b@example.org (550 no such)"


@pytest.mark.parametrize(("answer", "told"), [(b"", "closed"), (b"451 later\r\n", "answered 451")])
def test_message_that_was_not_accepted_is_an_error(answer: bytes, told: str) -> None:
    with served(smtp(b"", after_data=answer)) as server, pytest.raises(SendError, match=told):
        sent(server.port)


def request(connection: socket.socket) -> None:
    """Read the request: head and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65_536)


def post(
    port: int, monkeypatch: pytest.MonkeyPatch, *, proxy: bool = False, seconds: float = 60
) -> None:
    monkeypatch.setenv("CHAT", f"http://localhost:{port}/SECRET")
    hook = delivery.Webhook(url_variable="CHAT", proxy=proxy, timeout_seconds=seconds)
    delivery.post({"text": "x"}, hook)


def drip(first: bytes, over: threading.Event) -> Callable[[socket.socket], None]:
    """Answer with some bytes, then with one byte after the other for ever."""

    def talk(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(first)
        while not over.wait(0.01):
            connection.sendall(b"x")

    return talk


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_head_that_never_ends_is_an_error_in_time(
    monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    over = threading.Event()
    with served(drip(first, over)) as server:
        with pytest.raises(SendError, match=r"webhook: ") as caught:
            post(server.port, monkeypatch, seconds=0.3)
        over.set()
    assert "SECRET" not in str(caught.value)


def test_accepted_message_with_an_endless_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = threading.Event()
    with served(drip(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", over)) as server:
        post(server.port, monkeypatch)
        over.set()


def test_refusal_that_breaks_off_keeps_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def talk(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 50\r\n\r\n")

    with served(talk) as server, pytest.raises(SendError, match="webhook: it answered 404"):
        post(server.port, monkeypatch)


def taken(connection: socket.socket) -> None:
    request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_proxy_of_the_environment_is_used_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with served(taken) as chat, served(taken) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        post(chat.port, monkeypatch)
        assert (chat.calls, proxy.calls) == (1, 0)
        post(chat.port, monkeypatch, proxy=True)
        assert (chat.calls, proxy.calls) == (1, 1)
        monkeypatch.setenv("no_proxy", "localhost")
        post(chat.port, monkeypatch, proxy=True)
        assert (chat.calls, proxy.calls) == (2, 1)


def test_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(taken) as elsewhere:

        def moved(connection: socket.socket) -> None:
            request(connection)
            place = f"http://localhost:{elsewhere.port}/".encode()
            connection.sendall(
                b"HTTP/1.1 307 Moved\r\nContent-Length: 0\r\nLocation: " + place + b"\r\n\r\n"
            )

        with served(moved) as chat, pytest.raises(SendError, match="it answered 307"):
            post(chat.port, monkeypatch)
    assert elsewhere.calls == 0
