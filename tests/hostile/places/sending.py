"""Mail servers and chats that ``jmxlake send`` talks to."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.hostile import rooms
from tests.hostile.case import EITHER, REFUSED, SECRET, TAKEN, Case, Codes, Command, Found
from tests.hostile.places.answers import TRANSPORT, filled
from tests.hostile.serving import Server, whole

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

    from tests.hostile.case import Outcome, Room

_SEND: Final = ("jmxlake", "send", "report.json", "--settings", "send.yaml")
_ENDLESS: Final = b"250-" + b"x" * 60_000 + b"\r\n"
_LONG: Final = b"220 " + b"x" * (10 << 20) + b"\r\n"
_ESCAPES: Final = b"\x1b[2J\x1b]0;owned\x07"

MAIL: Final[dict[str, tuple[dict[str, bytes | float], str, Codes]]] = {
    "plain": ({}, "none", TAKEN),
    "quit 250": ({"QUIT": b"250 bye\r\n"}, "none", TAKEN),
    "quit 421": ({"QUIT": b"421 4.4.2 timeout\r\n"}, "none", TAKEN),
    "quit 500": ({"QUIT": b"500 what?\r\n"}, "none", TAKEN),
    "quit without an answer": ({"QUIT": 20.0}, "none", TAKEN),
    "quit closed": ({"QUIT": b""}, "none", TAKEN),
    "quit of garbage": ({"QUIT": b"\xff\x00\xfe\r\n"}, "none", TAKEN),
    "greeting 421": ({"hello": b"421 too many\r\n"}, "none", REFUSED),
    "greeting of two lines": ({"hello": b"220-a\r\n220 b\r\n"}, "none", TAKEN),
    "greeting without an end": ({"hello": _LONG}, "none", REFUSED),
    "greeting of a terminal": ({"hello": b"554 " + _ESCAPES + b"\r\n"}, "none", REFUSED),
    "greeting of garbage": ({"hello": bytes(range(256)) * 20}, "none", REFUSED),
    "silence": ({"hello": 20.0}, "none", REFUSED),
    "closed": ({"hello": b""}, "none", REFUSED),
    "no EHLO": ({"EHLO": b"502 no\r\n", "HELO": b"250 ok\r\n"}, "none", TAKEN),
    "endless EHLO": ({"EHLO": _ENDLESS * 99}, "none", REFUSED),
    "sender refused": ({"MAIL": b"550 " + _ESCAPES + b"\r\n"}, "none", REFUSED),
    "recipient refused": ({"RCPT": b"550 no\r\n"}, "none", REFUSED),
    "greylisted": ({"RCPT": b"451 later\r\n"}, "none", REFUSED),
    "data refused": ({"DATA": b"554 no\r\n"}, "none", REFUSED),
    "content refused": ({".": b"552 too big\r\n"}, "none", REFUSED),
    "content closed": ({".": b""}, "none", REFUSED),
    "content without an answer": ({".": 20.0}, "none", REFUSED),
    "no encryption": ({}, "starttls", REFUSED),
    "encryption of nothing": ({"EHLO": b"250-x\r\n250 STARTTLS\r\n", "STARTTLS": b"220 go\r\n"},
                              "starttls", REFUSED),
    "answers before encryption": (
        {"EHLO": b"250-x\r\n250 STARTTLS\r\n", "STARTTLS": b"220 go\r\n250 ok\r\n235 ok\r\n"},
        "starttls", REFUSED),
    "encryption refused": ({"EHLO": b"250-x\r\n250 STARTTLS\r\n", "STARTTLS": b"454 no\r\n"},
                           "starttls", REFUSED),
    "not TLS": ({}, "tls", REFUSED),
}  # fmt: skip
"""Answers by command (bytes, or seconds of silence), the security that is set, and exit codes."""

_CHATS: Final = (
    "says nothing", "closes at once", "drips its head", "drips its body", "endless line", "endless zeros",
    "endless head", "many headers", "gzip bomb", "redirect to a host", "redirect to a file",
    "redirect that keeps the method", "not HTTP", "status 401", "status 404", "status 999",
    "length too long", "many interim answers", "web page",
)  # fmt: skip
_MAY_DO: Final = ("endless line", "endless zeros", "gzip bomb", "length too long", "web page",
                  "drips its body")  # fmt: skip
"""A status of 200 says that the message was taken; what follows it does not count."""


def cases() -> Iterator[Case]:
    """Mail by what each command is answered; a chat by transport; proxies of the environment."""
    for name, (answers, security, codes) in MAIL.items():
        lay = partial(_lay_mail, answers=answers, security=security)
        send = Command(_SEND, codes, judged=_judged)
        yield Case("mail server", name, lay, (send,))
    for name in _CHATS:
        lay = partial(_lay_chat, answer=TRANSPORT[name][0])
        codes = EITHER if name in _MAY_DO else REFUSED
        yield Case("chat", name, lay, (Command(_SEND, codes, seconds=40, judged=_terminal),))
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"), "http://@CANARY@/")  # fmt: skip
    plain = partial(_lay_chat, answer=lambda one: one.sendall(whole("ok")))
    yield Case("chat", "proxies", plain, (Command(_SEND, TAKEN, environ=proxies),))
    for name, address in _ADDRESSES.items():
        lay = partial(_lay_address, address=address)
        yield Case("chat", f"address: {name}", lay, (Command(_SEND, REFUSED),))


_ADDRESSES: Final = {
    "without TLS": f"http://example.org/{SECRET}",
    "file": f"file:///etc/{SECRET}",
    "no scheme": f"//host/{SECRET}",
    "impossible port": f"https://127.0.0.1:99999/{SECRET}",
    "newline": f"https://127.0.0.1:1/{SECRET}\r\nX: 1",
    "two lines": f"https://127.0.0.1:1/{SECRET}\nhttps://x/",
    "user": f"https://u:{SECRET}@127.0.0.1:1/",
    "bad brackets": f"https://[::1/{SECRET}",
    "unicode": f"https://127.0.0.1:1/\u202e{SECRET}",
    "bad escape": f"https://127.0.0.1:1/%zz{SECRET}",
    "long": f"https://127.0.0.1:1/{SECRET}" + "x" * 200_000,
}


def _lay_mail(room: Room, answers: Mapping[str, bytes | float], security: str) -> None:
    rooms.facts(room)
    got = room.path / "out/got.txt"
    speak = partial(_speak, answers=answers, got=got)
    server = room.stack.enter_context(Server(speak, is_http=False))
    mail: dict[str, Any] = {
        "host": "127.0.0.1", "port": server.port, "security": security, "from": "k@example.org",
        "to": ["a@example.org"], "timeout_seconds": 4, "attach": ["json"],
    }  # fmt: skip
    if security != "none":
        mail |= {"username": "u", "password_variable": "HOSTILE_PASSWORD"}
    room.write("send.yaml", json.dumps({"mail": mail}))


_USUAL: Final = {"hello": b"220 mx.example.org\r\n", "EHLO": b"250-mx\r\n250 HELP\r\n",
                 "DATA": b"354 go\r\n", ".": b"250 queued\r\n", "QUIT": b"221 bye\r\n"}  # fmt: skip


def _speak(connection: socket.socket, answers: Mapping[str, bytes | float], got: Any) -> None:
    """SMTP, but for some answers; what came is kept."""
    usual: dict[str, bytes | float] = {**_USUAL, **answers}

    def answered(command: str) -> bool:
        answer = usual.get(command, b"250 ok\r\n")
        if isinstance(answer, float):
            time.sleep(answer)
        elif answer:
            connection.sendall(answer)
        return bool(answer) and not isinstance(answer, float)

    stream, goes_on = connection.makefile("rb"), answered("hello")
    with got.open("ab") as kept:
        while goes_on and (line := stream.readline()):
            kept.write(line)
            kept.flush()
            word = line.split()[0].decode("latin1").upper() if line.split() else ""
            goes_on = answered(word)
            if word == "DATA" and usual["DATA"] == _USUAL["DATA"]:
                while goes_on and stream.readline() not in (b".\r\n", b""):
                    continue
                goes_on = goes_on and answered(".")
            goes_on = goes_on and word != "QUIT"


def _lay_chat(room: Room, answer: Callable[[socket.socket], object]) -> None:
    server = room.stack.enter_context(Server(filled(room, answer)))
    _lay_address(room, f"{server.url}/services/{SECRET}")


def _lay_address(room: Room, address: str) -> None:
    rooms.facts(room)
    room.write("address", address).chmod(0o600)
    told = {"webhook": {"url_file": "address", "timeout_seconds": 4}}
    room.write("send.yaml", json.dumps(told))


def _judged(room: Room, outcome: Outcome) -> Iterator[Found]:
    yield from _terminal(room, outcome)
    got = room.path / "out/got.txt"
    if got.exists() and SECRET.encode() in got.read_bytes():
        yield Found("secrets_seen", "the mail server got the password without encryption")


def _terminal(_: Room, outcome: Outcome) -> Iterator[Found]:
    if "\x1b" in outcome.err + outcome.out:
        yield Found("code_run", "the terminal got an escape")
