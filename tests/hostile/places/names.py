"""Names in bronze: one lake for each name, in which everything is called so."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.hostile import rooms
from tests.hostile.case import EITHER, REFUSED, TAKEN, Case, Command, Found
from tests.hostile.values import NAMES
from tests.lake_builder import CLUSTER, Batch, micros
from tests.story_lake import NOBODY, Story

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.case import Outcome, Room

_LAKE: Final = "@ROOM@/lake"
_WEEK: Final = ("--week", "2026-W47")
_FAMILIES: Final = (
    "min_isr", "quotas", "offsets", "topology", "leaders", "tiered", "remote_reads", "log",
)  # fmt: skip
_SET_ASIDE: Final = ("empty", "too-long", "reserved")
"""Names that a rollup does not take, so that nothing is left to explain."""
_OF_CLUSTERS: Final = (
    "sql-quote", "braces", "script", "terminal", "parents", "absolute", "percent", "formula", "newlines",
    "nul", "too-long", "empty",
)  # fmt: skip
"""Names that a report could take for a file's, a query's or a page's."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MARKUP: Final = (
    "<script>fetch", "<img src=http", "<svg onload", 'onerror="alert', "49{% for", "href=http://127",
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Each name, through every command that shows one."""
    for name, value in NAMES.items():
        yield Case("names", name, partial(_lay, value=value), _commands(name, value))
    for name in _OF_CLUSTERS:
        places = partial(_lay_places, value=NAMES[name])
        yield Case("names of clusters", name, places, _commands_of_clusters())


def _lay(room: Room, value: str) -> None:
    name = room.fill(value)
    _story(name, CLUSTER, "broker-1").commit(room.path / "lake")
    owners = [{"team": name or "-", "topics": ["*"], "clients": ["*"]}]
    room.write("owners.yaml", json.dumps({"owners": owners}))
    mail = {"host": "127.0.0.1", "security": "none", "from": "k@example.org", "to": ["a@b.org"]}
    room.write("send.yaml", json.dumps({"mail": mail}))


def _lay_places(room: Room, value: str) -> None:
    """Clusters, sources, racks and versions are called so, too."""
    name = room.fill(value)
    _story("orders", name, name).commit(room.path / "lake")


def _story(name: str, cluster: str, source: str) -> Story:
    """Two hours of bronze in which every subject has a name."""
    batch, place = Batch(), {"cluster": cluster, "source": source}
    for start in range(0, 7200, 300):
        end = start + 300
        for family in _FAMILIES:
            batch.scrape(family, start, end, error=name, **place)
        who = {**place, "topic": name}
        batch.zeros("kafka.partition.under_min_isr", start, end, name, [1, 2], **place)
        batch.run("kafka.partition.under_min_isr", start, start + 60, 1.0, partition=0, **who)
        batch.run("kafka.client.produce.throttle_time", start, end, 7.0, user=name, client_id=name,
                  **place)  # fmt: skip
        batch.idle("kafka.client.fetch.throttle_time", start, end, [(name, name)], **place)
        batch.counter("kafka.group.non_consumed", start, end, 5.0, group=name, partition=0, **who)
        batch.run("kafka.topic.remote_copy_lag.bytes", start, end, 9.0, **who)
        batch.run(name, start, end, 3.0, **who)
    kinds = ("leader_change", "quota_change", "rack_change", "source_restart", name)
    events = [
        {**NOBODY, "date": micros(60) // 86_400_000_000, "at": micros(60 * number), "kind": kind,
         "topic": name, "user": name, "client_id": name, "group": name, "old": name, "new": name,
         "agent": "agent-1", "batch": 1, **place}
        for number, kind in enumerate(kinds, 1)
    ]  # fmt: skip
    return Story(2, batch=batch, events=events)


def _commands(name: str, value: str) -> tuple[Command, ...]:
    gone = EITHER if name in _SET_ASIDE else TAKEN
    outs = ("--html", "out/r.html", "--json", "out/r.json", "--csv", "out/csv")
    weekly = ("jmxlake", "weekly", _LAKE, "--engine", "local", *rooms.PERIOD, *outs)
    export = ("jmxlake", "export", _LAKE)
    return (
        Command((*weekly, "--owners", "owners.yaml"), EITHER if name == "empty" else TAKEN,
                writes=("lake",), judged=_report),
        Command(("jmxlake", "send", "out/r.json", "--settings", "send.yaml", "--dry-run"), gone,
                judged=_mail),
        Command((*export, "clients", "--format", "csv", "--out", "out/c.csv"), gone, "export csv"),
        Command((*export, "topics", "--format", "openmetrics", "--out", "out/t.om"), gone,
                "export openmetrics", judged=_openmetrics),
        Command(("jmxlake", "doctor", _LAKE), REFUSED, judged=_terminal),
        *(_asked(value) if "\x00" not in value else ()),  # no argument of a program can have one
    )  # fmt: skip


def _asked(value: str) -> tuple[Command, ...]:
    """Commands that take the name as an argument."""
    explain = ("jmxlake", "explain", _LAKE)
    return (
        Command((*explain, f"topic:{value}", *_WEEK), name="explain topic", judged=_terminal),
        Command(("jmxlake", "forget", _LAKE, "--", value), writes=("lake",), judged=_terminal),
    )  # fmt: skip


def _commands_of_clusters() -> tuple[Command, ...]:
    return (
        Command((*rooms.ROLLUP, "--tidy", "never"), TAKEN, writes=("lake",), judged=_terminal),
        Command((*rooms.REPORT, "--every-cluster", "out/all", "--html", "out/r.html"),
                judged=_report),
        Command(("jmxlake", "doctor", _LAKE, "--json"), REFUSED, judged=_terminal),
    )  # fmt: skip


def _report(room: Room, outcome: Outcome) -> Iterator[Found]:
    yield from _terminal(room, outcome)
    for file in sorted((room.path / "out").rglob("*.html")):
        page = file.read_text("utf-8")
        for one in _MARKUP:
            if one in page:
                yield Found("code_run", f"the page has markup of a name: {one}")
    for file in sorted((room.path / "out/csv").glob("*.csv")):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            cells = [cell for row in csv.reader(stream) for cell in row]
        for cell in cells:
            if re.match(r"\s*[=+@]|\s*-\D", cell):
                yield Found("code_run", f"{file.name} has a formula: {cell[:60]!r}")
                break


def _mail(room: Room, outcome: Outcome) -> Iterator[Found]:
    yield from _terminal(room, outcome)
    if re.search(r"^Bcc:", outcome.out, re.MULTILINE | re.IGNORECASE):
        yield Found("code_run", "a name became a header of the mail")


def _terminal(_: Room, outcome: Outcome) -> Iterator[Found]:
    for stream in (outcome.out.replace("\r\n", "\n"), outcome.err):
        if found := _CONTROLS.search(stream):
            yield Found("code_run", f"the terminal got {found[0]!r}")
            return


def _openmetrics(room: Room, _: Outcome) -> Iterator[Found]:
    file = room.path / "out/t.om"
    if not file.exists():
        return
    line = re.compile(r'(#.*|[a-zA-Z_:][\w:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\.)*",?)*\})? \S+.*)')
    for one in file.read_bytes().decode().split("\n"):
        if one and not line.fullmatch(one):
            yield Found("code_run", f"a name left its label: {one[:80]!r}")
            return
