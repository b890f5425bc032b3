"""The facts of a saved report, from which pages, tables and messages are made."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.hostile import rooms
from tests.hostile.case import EITHER, REFUSED, TAKEN, Case, Codes, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.hostile.case import Room

_DEEP: Final = 100_000
_OUTS: Final = ("--html", "out/r.html", "--json", "out/r.json", "--csv", "out/csv")
_REPORT: Final = Command(("jmxlake", "report", "report.json", *_OUTS), REFUSED)
_SUMMARY: Final = Command(("jmxlake", "summary", "report.json", "--html", "out/s.html"), REFUSED)
_KEYS: Final = (
    "availability", "brokers", "burnt", "business_hours", "changed", "cluster", "clients", "composites",
    "consumer_lag", "coverage", "events", "format", "from", "incidents", "jmxlake", "kafka", "latency", "leaderless",
    "lost", "maintenance", "min_isr", "objectives", "other_metrics", "owners", "period", "racks", "remote_reads",
    "restated", "throttling", "tiered", "to", "topics", "traffic", "trends", "verdicts",
)  # fmt: skip
"""Keys of the facts; those that a version does not have are ones that it does not know."""
_WRONG: Final[dict[str, Any]] = {
    "text": "x",
    "null": None,
    "number": 5,
    "list": [5],
    "map": {"x": 5},
}


def cases() -> Iterator[Case]:
    """Files that are no facts, then facts of which one value is of another kind."""
    for name, (make, codes) in _FILES.items():
        yield _case(f"file: {name}", partial(_lay_file, make=make), codes)
    for name, change in _CHANGES.items():
        yield _case(f"facts: {name}", partial(_lay_change, change=change), REFUSED)
    for number, key in enumerate(_KEYS):
        # Each key with one wrong value; together they have each kind of it.
        kind = tuple(_WRONG)[number % len(_WRONG)]
        change = partial(_set, key=key, value=_WRONG[kind])
        may_be = kind == "map" or key not in _ALWAYS or (key, kind) == ("cluster", "text")
        codes = EITHER if may_be else REFUSED
        yield _case(f"key {key}: {kind}", partial(_lay_change, change=change), codes)


_ALWAYS: Final = (
    "cluster",
    "from",
    "to",
    "verdicts",
    "objectives",
    "throttling",
    "coverage",
    "format",
)
"""Keys that every version has: those of another kind must be refused."""


def _case(name: str, lay: Callable[[Room], None], codes: Codes) -> Case:
    report = Command(_REPORT.words, codes)
    more = (Command(_SUMMARY.words, EITHER),) if name.startswith("facts") else ()
    return Case("report facts", name, lay, (report, *more))


def _lay_file(room: Room, make: Callable[[Path, str], object]) -> None:
    file = rooms.facts(room)
    valid = file.read_text("utf-8")
    file.unlink()
    make(file, valid)


def _lay_change(room: Room, change: Callable[[dict[str, Any]], None]) -> None:
    file = rooms.facts(room)
    told = json.loads(file.read_text("utf-8"))
    change(told)
    file.write_text(json.dumps(told, ensure_ascii=False), "utf-8", "surrogatepass")


def _set(facts: dict[str, Any], key: str, value: object) -> None:
    facts[key] = value


def _text(text: str) -> Callable[[Path, str], object]:
    return lambda file, _: file.write_text(text, "utf-8")


_FILES: Final[dict[str, tuple[Callable[[Path, str], object], Codes]]] = {
    "valid": (lambda file, valid: file.write_text(valid), TAKEN),
    "byte-order mark": (lambda file, valid: file.write_text(f"\ufeff{valid}", "utf-8"), TAKEN),
    "UTF-16": (lambda file, valid: file.write_bytes(valid.encode("utf-16")), EITHER),
    "empty": (_text(""), REFUSED),
    "cut": (lambda file, valid: file.write_text(valid[:-500]), REFUSED),
    "deep": (_text('{"a":' * _DEEP), REFUSED),
    "deep lists": (_text("[" * _DEEP + "]" * _DEEP), REFUSED),
    "two": (lambda file, valid: file.write_text(valid + valid), REFUSED),
    "duplicate key": (
        lambda file, valid: file.write_text(valid.rstrip()[:-1] + ',"objectives":[]}'), REFUSED
    ),
    "list": (_text("[1]"), REFUSED),
    "huge number": (_text('{"format":' + "9" * 50_000 + "}"), REFUSED),
    "NUL": (_text('{"a":"\x00"}'), REFUSED),
    "pipe": (lambda file, _: os.mkfifo(file), REFUSED),
    "directory": (lambda file, _: file.mkdir(), REFUSED),
    "endless": (lambda file, _: file.symlink_to("/dev/zero"), REFUSED),
    "link to itself": (lambda file, _: file.symlink_to(file.name), REFUSED),
    "missing": (lambda _, __: None, REFUSED),
}  # fmt: skip


def _objective(**changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(facts: dict[str, Any]) -> None:
        facts["objectives"][0].update(changed)

    return change


def _without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts["objectives"][0].pop(key, None)


def _each_number(value: float) -> Callable[[dict[str, Any]], None]:
    """Every duration is another number."""

    def changed(one: Any) -> Any:
        if isinstance(one, dict):
            return {
                key: value if key.endswith("_us") and part is not None else changed(part)
                for key, part in one.items()
            }
        return [changed(part) for part in one] if isinstance(one, list) else one

    def change(facts: dict[str, Any]) -> None:
        facts.update(changed(facts))

    return change


_CHANGES: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "objectives of text": lambda facts: _set(facts, "objectives", "x"),
    "objective of nothing": lambda facts: facts["objectives"].append(None),
    "objective of a number": lambda facts: facts["objectives"].append(5),
    "objective without a name": _without("name"),
    "objective with a map for a name": _objective(name={"a": 1}),
    "objective with text for a target": _objective(target="x"),
    "instant of text": lambda facts: _set(facts, "from", "yesterday"),
    "instant of the year 99999": lambda facts: _set(facts, "to", "99999-01-01T00:00:00Z"),
    "instant of a number": lambda facts: _set(facts, "to", 10**30),
    "durations of 10^400": _each_number(10**400),
    "durations of -1": _each_number(-1),
    "durations that are not a number": _each_number(float("nan")),
    "durations without end": _each_number(float("inf")),
    "format of text": lambda facts: _set(facts, "format", "1; COPY"),
    "format of the future": lambda facts: _set(facts, "format", 99),
}  # fmt: skip
