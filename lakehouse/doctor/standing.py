"""How each table stands: files, commits, log, schema, protocol."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.doctor.finding import Check, Finding, Severity, counted, named, some
from lakehouse.errors import ForeignEngineError, TableSchemaError
from lakehouse.maintain import state as states
from lakehouse.maintain.plan import MOST_FILES, MOST_UNCHECKPOINTED, day_of
from lakehouse.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Place

MOST_COMMITS_A_DAY: Final = 10_000
"""Of 30 agents with the usual interval of five minutes come 8,640 (docs/maintenance.md)."""

# At ten times the budget an agent needs 10 s and more than a gigabyte to open a table.
_FAR_BEYOND: Final = 10
_CLEANED_DAYS: Final = 3
_LOG_AGE: Final = dt.timedelta(days=31)
# A few commits say little of a day.
_LEAST_TIME: Final = dt.timedelta(hours=1)
_MAINTAIN: Final = (
    "run jmxlake maintain --every 1m as a service, on one host (docs/maintenance.md); where it "
    "runs, see its log"
)
_FILES: Final = "{:,} live files, more than {:,}"
_SERVE: Final = frozenset({"changeDataFeed", "appendOnly", "invariants", "checkConstraints"})
"""Writer features that agents, maintenance and the rollup are known to get along with."""


class Standing(NamedTuple):
    """A table as it stands.

    Attributes:
        table: Which table.
        version: Its newest version.
        files: Live files.
        size: Their bytes.
        protocol: Least reader and writer version of Delta that it asks for.
        checked: Version of the maintenance's last checkpoint; -1: none; of gold no matter.
        cleaned: Day of its last clean-up, since 1970; -1: none; of gold no matter.
        commits_a_day: As the newest commits come; None where there are too few, and of gold.
    """

    table: Table
    version: int
    files: int
    size: int
    protocol: tuple[int, int]
    checked: int = -1
    cleaned: int = -1
    commits_a_day: int | None = None

    @property
    def uncheckpointed(self) -> int | None:
        """Commits since the maintenance made a checkpoint; None of gold."""
        return self.version - self.checked if self.table.layer == "bronze" else None


def standing(table: Table, delta: DeltaTable, a_day: int | None = None) -> Standing:
    """How a table stands, by its log alone."""
    sizes, protocol = delta.get_add_actions().column("size_bytes").to_pylist(), delta.protocol()
    return Standing(
        table, delta.version(), len(sizes), sum(sizes),
        (protocol.min_reader_version, protocol.min_writer_version),
        states.mark(delta, states.CHECKED), states.mark(delta, states.CLEANED), a_day,
    )  # fmt: skip


def shape(place: Place, table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Whether a table of bronze is what agents of this version write, and who wrote to it."""
    url = place.url(table)
    try:
        states.check_ours(table, delta, url)
    except TableSchemaError as error:
        yield Finding(
            "error", "schema", table.path, str(error).removeprefix(f"{url}: "),
            "agents of this version cannot deliver: find what changed the table, or give the "
            "agents another lake.path",
        )  # fmt: skip
    features = set(delta.protocol().writer_features or ()) - _SERVE
    if features:
        yield Finding(
            "warning", "protocol", table.path,
            f"it asks for Delta features that no agent turns on: {some(sorted(features))}",
            "find what engine did; agents say at their start whether they can write it "
            "(jmxlake-agent check)",
        )  # fmt: skip
    try:
        states.unknown_engines(delta, states.mark(delta, states.CHECKED), url)
    except ForeignEngineError as error:
        yield Finding(
            "error", "engine", table.path, str(error).removeprefix(f"{url}: "),
            "maintenance refuses the table until a person has looked (docs/maintenance.md)",
        )  # fmt: skip


def gold_shape(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Whether a table of gold has the columns this version knows, and any engine can read it."""
    columns = {field.name: states.spelt(field.type) for field in delta.schema().fields}
    wrong = [
        f"{one.name} is {columns.get(one.name, 'missing')}, not {one.type}"
        for one in table.columns
        if columns.get(one.name) != one.type.lower()
    ]
    if wrong:
        more = f" and {counted(len(wrong) - 3, 'other')}" if len(wrong) > 3 else ""
        yield Finding(
            "warning", "schema", table.path, f"{'; '.join(wrong[:3])}{more}",
            "run jmxlake rollup of this version: it adds columns; where a type differs, find what "
            "made the table",
        )  # fmt: skip
    protocol = delta.protocol()
    features = protocol.reader_features or ()
    if protocol.min_reader_version > 1 or features:
        yield Finding(
            "warning", "protocol", table.path,
            "not every engine can read it: it asks for reader version "
            f"{protocol.min_reader_version} {named(', '.join(sorted(features)))}",
            "find what engine upgraded it; jmxlake's own tables of gold ask for reader 1",
        )  # fmt: skip


def kept(
    stands: Standing, now: dt.datetime, age: dt.timedelta, unread: str | None
) -> Iterator[Finding]:
    """Whether a table of bronze is maintained: the budget of files and commits, and the log.

    Args:
        stands: How it stands.
        now: The instant, UTC.
        age: Since when there is the table.
        unread: Why nobody knows what the rollup has read; None where that is known.
    """
    yield from _over(stands, "files", stands.files, MOST_FILES, _FILES, _MAINTAIN)
    yield from _over(
        stands, "uncheckpointed", stands.version - stands.checked, MOST_UNCHECKPOINTED,
        "{:,} commits without a checkpoint, more than {:,}: whoever opens it reads them all",
        _MAINTAIN,
    )  # fmt: skip
    days = day_of(now) - stands.cleaned
    if age > _LOG_AGE and (stands.cleaned < 0 or days > _CLEANED_DAYS):
        since = "were never" if stands.cleaned < 0 else f"were for {counted(days, 'day')} not"
        because = "" if unread is None else f": {named(unread)}"
        yield Finding(
            "warning", "log", stands.table.path,
            f"its log and removed files {since} cleaned up, and grow{because}", _MAINTAIN,
        )  # fmt: skip


def growth(stands: Standing) -> Iterator[Finding]:
    """Whether more commits come than a log of 30 days should hold."""
    a_day = stands.commits_a_day
    if a_day is not None and a_day > MOST_COMMITS_A_DAY:
        yield Finding(
            "warning", "log_growth", stands.table.path,
            f"{a_day:,} commits a day: checkpoints of a log of 30 days grow with their square",
            "set lake.commit_interval of the agents to 15m or longer, or give each cluster a lake "
            "of its own",
        )  # fmt: skip


def gold_kept(stands: Standing) -> Iterator[Finding]:
    """Whether a table of gold is kept small."""
    todo = "run jmxlake rollup --tidy now"
    yield from _over(stands, "files", stands.files, MOST_FILES, _FILES, todo)


def commits_a_day(instants: Sequence[dt.datetime]) -> int | None:
    """How many commits come a day.

    Args:
        instants: When the newest ones were made, in order.
    """
    if len(instants) < 2 or max(instants) - min(instants) < _LEAST_TIME:
        return None
    return round((len(instants) - 1) * dt.timedelta(days=1) / (max(instants) - min(instants)))


def age(delta: DeltaTable, now: dt.datetime) -> dt.timedelta:
    """Since when there is the table; nothing where it does not tell."""
    created: Any = delta.metadata().created_time
    return dt.timedelta() if created is None else now - states.instant(created)


def not_there(table: Table) -> Finding:
    """A table that should be there."""
    if table.layer == "gold":
        severity: Severity = "warning"
        todo = "run jmxlake rollup: it makes it"
    else:
        severity, todo = "error", "let an agent of this version deliver, or look who removed it"
    return Finding(severity, "missing", table.path, "there is no such table", todo)


def _over(
    stands: Standing, check: Check, number: int, most: int, what: str, todo: str
) -> Iterator[Finding]:
    if number > most:
        severity: Severity = "error" if number > _FAR_BEYOND * most else "warning"
        yield Finding(severity, check, stands.table.path, what.format(number, most), todo)
