"""Writer of a sample: bronze as one commit per table, and files of owners and maintenance."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake

from lakehouse import tables
from lakehouse.core.delta_rs import explained
from lakehouse.core.lake import checked_root
from lakehouse.core.metrics import shipped_rows, shipped_traits
from lakehouse.core.periods import DAY_US, MINUTE_US, iso
from lakehouse.engines.delta_tables import stored_schema
from lakehouse.errors import LakehouseError
from lakehouse.kernel import arrow_types, run_in_duckdb
from lakehouse.sample import cluster, timeline
from lakehouse.sample.timeline import WINDOW_US, Series
from lakehouse.sample.values import SampleValues
from lakehouse.tables.bronze import writer_properties
from lakehouse.tables.table import identifier
from lakehouse.tables.typed_settings import schema_comment

Row = tuple[Any, ...]

NOTHING_LISTENS: Final = (
    "nothing listens there; check that the process is running and the port is right"
)
_FIRST_AGENT: Final = f"agent-{cluster.SOURCES[cluster.BROKERS[0]]}"
REFUSED_US: Final = 2_000
"""Time in which a host refuses a connection."""

_OWNERS: Final[dict[str, Any]] = {
    "owners": [
        {
            "team": "Commerce", "owner": "Mia Lindgren", "tier": "gold",
            "topics": ["orders", "inventory", "clicks"], "groups": ["warehouse"],
            "users": ["shop", "web", "warehouse", "search", "mobile"],
        },
        {
            "team": "Finance", "owner": "Tomas Rey", "tier": "gold",
            "topics": ["payments", "invoices", "audit"], "groups": ["audit-archive"],
            "users": ["billing", "audit", "reporting", "fraud"],
        },
        {"team": "Kafka platform", "owner": "Noor Haddad", "sources": ["*"]},
    ],
    "prices": {
        "currency": "EUR", "stored_gib_month": 0.021, "uploaded_gib": 0, "read_gib": 0.09,
        "disk_gib_month": 0.08,
    },
}  # fmt: skip
_MARK: Final = "# By jmxlake sample, which writes over it; delete this line to keep it.\n"
_BEFORE_US: Final = 30 * MINUTE_US
_PLANNED_US: Final = 90 * MINUTE_US


class Beside(NamedTuple):
    """The files of a lake, which have its name."""

    owners: Path
    maintenance: Path


def beside(root: Path) -> Beside:
    """Return the paths of a lake's files."""
    return Beside(*(root.with_name(f"{root.name}-{one}.yaml") for one in Beside._fields))


def write(root: Path, spans: Sequence[SampleValues]) -> int:
    """Write a sample: a lake in a folder without a lake, and its files.

    Args:
        root: The folder; it is created if it is missing.
        spans: Spans of time that follow each other.

    Returns:
        How many runs there are.

    Raises:
        LakehouseError: There is a lake already, or nothing can be written there.
        LakeNotFoundError: delta-rs cannot open a folder of that name.
    """
    files, place = beside(root), check_free(root)
    rows_by_table = rows(spans)
    with explained(str(place)):
        for name, whole in rows_by_table.items():
            table = _TABLES[name]
            delta = DeltaTable.create(
                str(place / table.path), schema=stored_schema(table),
                partition_by=list(table.partition_by), description=table.comment,
                configuration=table.properties, raise_if_key_not_exists=False,
            )  # fmt: skip
            for content, info in _commits(table, whole):
                write_deltalake(
                    delta, content, mode="append", writer_properties=writer_properties(table),
                    commit_properties=CommitProperties(info),
                    post_commithook_properties=PostCommitHookProperties(create_checkpoint=False),
                )  # fmt: skip
    write_files(files, [incident for span in spans for incident in span.incidents])
    return len(rows_by_table[tables.RUNS.name])


def check_free(root: Path) -> Path:
    """Return the whole path of a folder without a lake, whose files may be written.

    Raises:
        LakehouseError: There is a lake already, or a file that no sample wrote.
    """
    place = Path(checked_root(str(root))).resolve()
    if any((place / layer).exists() for layer in ("bronze", "gold")):
        raise LakehouseError(f"{place}: a lake already exists. Choose a new or empty folder")
    for file in beside(root):
        if file.exists() and _MARK.encode() not in file.read_bytes():
            raise LakehouseError(
                f"{file}: not a file of a sample; not overwritten. Choose another folder"
            )
    return place


def write_files(files: Beside, happened: Sequence[cluster.Incident]) -> None:
    """Write the files of owners and of planned maintenance.

    Raises:
        LakehouseError: One cannot be written.
    """
    contents = _OWNERS, {"maintenance": _planned(happened)}
    for file, name, content in zip(files, Beside._fields, contents, strict=True):
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
        text = schema_comment(name) + _MARK + text
        try:
            file.write_text(text, "utf-8")
        except OSError as error:
            raise LakehouseError(f"{file}: {error.strerror}") from error


def _planned(happened: Sequence[cluster.Incident]) -> list[dict[str, Any]]:
    """Return an hour and a half of each day on which all brokers are restarted."""
    days = sorted({one.from_us // DAY_US * DAY_US for one in happened if one.kind == "restarted"})
    starts = [day + cluster.RESTART_MINUTE * MINUTE_US - _BEFORE_US for day in days]
    return [
        {
            "start": iso(start), "end": iso(start + _PLANNED_US), "clusters": [cluster.NAME],
            "reason": "monthly updates of the brokers' hosts",
        }
        for start in starts
    ]  # fmt: skip


def _commits(table: tables.Table, rows: pa.Table) -> Iterator[tuple[pa.Table, dict[str, str]]]:
    """Yield all rows as one commit; of scrapes the last window as one commit per agent.

    Those commits have the version of their agent.
    """
    if table is not tables.SCRAPES:
        yield rows, {}
        return
    starts = rows["start"].cast(pa.int64())
    is_last = pc.greater_equal(starts, pc.max(starts).as_py() // WINDOW_US * WINDOW_US)
    yield rows.filter(pc.invert(is_last)), {}
    last = rows.filter(is_last)
    for agent in sorted(pc.unique(last["agent"]).to_pylist()):
        info = {tables.COMMIT_AGENT: agent, tables.COMMIT_VERSION: version("jmxlake")}
        yield last.filter(pc.equal(last["agent"], agent)), info


def rows(spans: Sequence[SampleValues]) -> dict[str, pa.Table]:
    """Return the rows of each table of bronze, in its order."""
    each = [_rows(one, spans[0].start_us) for one in spans]
    whole = {
        table.name: pa.concat_tables([one[table.name] for one in each]) for table in tables.BRONZE
    }
    members = whole[tables.MEMBERS.name]
    with run_in_duckdb.connect() as db:
        db.register("members", members)
        once = db.sql(_ONCE).to_arrow_table()
    parts = zip(tables.CATALOGUES, (_definitions(spans), _traits(spans)), strict=True)
    return whole | {
        tables.MEMBERS.name: once.cast(members.schema),
        **{one.name: arrow_types.rows(arrow_types.of_table(one), rows) for one, rows in parts},
    }


def _rows(sample: SampleValues, first_us: int) -> dict[str, pa.Table]:
    with run_in_duckdb.connect() as db:
        catalogue = catalogue_of(sample)
        db.execute(_MACROS.format(start_us=first_us, catalogue=catalogue))
        subjects = _register_series(db, sample)
        _register(db, "attempts", _ATTEMPTS, list(_attempts(sample)))
        noticed = [(cluster.SOURCES[one.source], *one[1:]) for one in sample.events()]
        _register(db, "noticed", "source at_us kind topic partition old new", noticed)
        db.execute(_FOLDED)
        lists = db.execute("SELECT DISTINCT numbers FROM folded WHERE len(numbers) > 1").fetchall()
        sets = [(one, *_set([subjects[n] for n in one])) for (one,) in lists]
        _register(db, "sets", "numbers set kind topic partitions clients", sets)
        each = zip(tables.BRONZE, (_RUNS, _MEMBERS, _SCRAPES, _EVENTS), strict=True)
        return {table.name: _ordered(db, table, sql) for table, sql in each}


def catalogue_of(sample: SampleValues) -> str:
    """Return the hash of the catalogue that agents use."""
    return "sample-at-first" if sample.is_older else "sample"


def _definitions(spans: Sequence[SampleValues]) -> Iterator[Row]:
    """Yield the meaning of each metric, as the first agent of each catalogue writes it."""
    for sample in spans:
        for one in shipped_rows():
            if one["metric"] in cluster.METRICS and sample.reads(one["metric"]):
                yield (
                    catalogue_of(sample), one["metric"], one["family"], one["roles"].split(),
                    one["kind"], one["unit"], one["absent"], int(one["memory_us"]),
                    int(one["refresh_us"]), "", _FIRST_AGENT,
                )  # fmt: skip


def _traits(spans: Sequence[SampleValues]) -> Iterator[Row]:
    """Yield the traits of each metric, as the first agent of each catalogue writes them."""
    for sample in spans:
        for one in shipped_traits():
            if one.metric in cluster.METRICS and sample.reads(one.metric):
                yield (catalogue_of(sample), *one, _FIRST_AGENT)


def _ordered(db: duckdb.DuckDBPyConnection, table: tables.Table, sql: str) -> pa.Table:
    columns = ", ".join(map(identifier, table.column_names))
    by = map(identifier, (*table.partition_by, *table.sort_by))
    order = ", ".join(f"{one} NULLS FIRST" for one in by)
    return db.sql(f"SELECT {columns} FROM ({sql}) ORDER BY {order}").to_arrow_table()


def _register(db: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Sequence[Row]) -> None:
    """Register rows as a table with the columns of these names."""
    shape = arrow_types.schema((one, _TYPES.get(one, "bigint")) for one in columns.split())
    db.register(name, arrow_types.rows(shape, rows))


def _register_series(db: duckdb.DuckDBPyConnection, sample: SampleValues) -> list[cluster.Subject]:
    """Register all series, their spans, and increases of counters; returns their subjects."""
    subjects: list[cluster.Subject] = []
    series: list[Row] = []
    held: list[Row] = []
    rises: list[Row] = []
    pulses: list[Row] = []
    for source, name in cluster.SOURCES.items():
        attempts = {one: sample.attempts(source, one) for one in sample.families(source)}
        pulses += ((name, *one) for one in sample.pulses(source))
        for subject, history, increments, flow in sorted(sample.series(source), key=_order):
            metric, number = cluster.METRICS[subject.metric], len(subjects)
            read = attempts[metric.family]
            flags = (*[tables.FLAG_INCREASE] * metric.is_counter, *metric.flags)
            subjects.append(subject)
            series.append((
                number, name, *subject[:-1], subject.labels or None, flags, read.interval_us,
                read.offset_us, read.took_us, flow,
            ))  # fmt: skip
            held += ((number, *one) for one in timeline.of_series(metric, history, read))
            rises += ((number, read.answered(read.number(at)), more) for at, more in increments)
    _register(db, "series", _SERIES, series)
    _register(db, "spans", _SPANS, held)
    _register(db, "scripted", "number at_us more", rises)
    _register(db, "pulses", "source at_us percent", pulses)
    db.execute(_RISES)
    return subjects


def _order(one: Series) -> tuple[object, ...]:
    return one.subject.partition or 0, one.subject.user or "", one.subject.client_id or ""


def _set(members: Sequence[cluster.Subject]) -> Row:
    """Return a set's hash and contents, as agents write them."""
    topic = members[0].topic
    content: Row = "partitions", topic, [one.partition for one in members], None
    if members[0].partition is None:
        content = "clients", None, None, [(one.user, one.client_id) for one in members]
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32], *content


def _attempts(sample: SampleValues) -> Iterator[Row]:
    """Yield spans of equal outcomes of all attempts."""
    for source, name in cluster.SOURCES.items():
        for family in sample.families(source):
            read, attempts = cluster.FAMILIES[family], sample.attempts(source, family)
            for outcome, from_us, to_us in attempts.outcomes():
                ok = outcome == "ok"
                took_us = 0 if outcome == "down" else attempts.took_us
                yield (
                    name, family, from_us, to_us, outcome, read.beans if ok else 0,
                    took_us if ok else REFUSED_US, 0 if ok else took_us, took_us,
                    attempts.interval_us, attempts.offset_us,
                    round(attempts.interval_us * tables.MAX_GAP_INTERVALS),
                    cluster.KAFKA_VERSION if ok and read.via_jmx else None,
                    None if ok else NOTHING_LISTENS,
                )  # fmt: skip


_TABLES: Final = {one.name: one for one in (*tables.BRONZE, *tables.CATALOGUES)}
_ONCE: Final = """
SELECT * FROM members
QUALIFY row_number() OVER (PARTITION BY "set", agent ORDER BY batch) = 1 ORDER BY kind, topic, "set"
"""
_SERIES: Final = (
    "number source metric topic partition user client_id group labels flags interval_us offset_us "
    "took_us flow"
)
_SPANS: Final = "number value from_us to_us lead may_end over was_positive stays_positive"
_ATTEMPTS: Final = (
    "source family from_us to_us outcome each lasted_us late_us took_us interval_us offset_us "
    "max_gap_us kafka_version error"
)
_TYPES: Final = {one.name: one.type for table in tables.BRONZE for one in table.columns} | {
    "numbers": "array<int>", "more": "double", "flow": "double", "percent": "double",
    "was_positive": "boolean",
    "stays_positive": "boolean",
}  # fmt: skip
"""Types of the columns above, which mostly are bronze's; others are bigint."""

# `attempts_between` counts the attempts in a span. `parts` cuts spans at the starts of windows.
_MACROS: Final = f"""
CREATE MACRO catalogue_in_force() AS '{{catalogue}}';
CREATE MACRO batch_of(at_us) AS (at_us - {{start_us}}) // {WINDOW_US} + 1;
CREATE MACRO attempts_between(a, b, first, every) AS
    (b - first + every - 1) // every - (a - first + every - 1) // every;
CREATE MACRO parts(name) AS TABLE
    SELECT *, greatest(from_us, window_us) AS s, least(to_us, window_us + {WINDOW_US}) AS e
    FROM (SELECT *, unnest(range(from_us - from_us % {WINDOW_US}, to_us, {WINDOW_US})) AS window_us
        FROM query_table(name));
"""

# The first answer after a pulse reports its increase.
_RISES: Final = """
CREATE TABLE rises AS
SELECT number, more, at_us FROM scripted
UNION ALL
SELECT number, flow * percent, took_us + offset_us
    + (at_us - offset_us + interval_us - 1) // interval_us * interval_us AS at_us
FROM series JOIN pulses USING (source) WHERE flow > 0
"""

# Folded as agents fold: series of one metric that are zero or idle, by partition or else by client.
_FOLDED: Final = f"""
CREATE TABLE folded AS
WITH cut AS MATERIALIZED (FROM parts('spans')), risen AS (
    SELECT cut.number, s, sum(more) AS increase
    FROM cut JOIN rises ON rises.number = cut.number AND at_us >= s AND at_us < e
        AND at_us // {WINDOW_US} = s // {WINDOW_US}
    GROUP BY ALL
), valued AS (
    SELECT number, s, e, coalesce(increase, value) AS value, if(s = from_us, lead, 0) AS lead_us,
        if(stays_positive AND e < to_us, 0,
            greatest(0, least(e - s, may_end - (over - e)))) AS tail_us,
        was_positive AND s = from_us AS was_positive,
        stays_positive AND e = to_us AS stays_positive
    FROM cut LEFT JOIN risen USING (number, s)
), common AS (
    SELECT number, min(number) OVER (
        PARTITION BY source, metric, topic, "group", labels, partition IS NULL) AS common
    FROM series
)
SELECT min(number) AS number, list_sort(list(number::INT)) AS numbers,
    value, s, e, lead_us, tail_us, was_positive, stays_positive
FROM valued JOIN common USING (number)
GROUP BY if(value <> 0, number, common), value, s, e, lead_us, tail_us, was_positive, stays_positive
"""
_COMMON: Final = f"'{cluster.NAME}' AS cluster, 'agent-' || source AS agent"
_PLACED: Final = f"""{_COMMON}, batch_of(s) AS batch, make_timestamptz(s)::DATE AS date,
    make_timestamptz(s) AS start, make_timestamptz(e) AS "end" """
_RUNS: Final = f"""
SELECT {_PLACED}, source, metric, series.topic, if(len(numbers) = 1, partition, NULL) AS partition,
    if(len(numbers) = 1, "user", NULL) AS "user", "group", labels, lead_us, tail_us, value,
    if(len(numbers) = 1, client_id, NULL) AS client_id,
    attempts_between(s - took_us, e - took_us, offset_us, interval_us)::INT AS scrapes,
    len(numbers)::INT AS series, "set" AS members,
    nullif(list_concat(flags, if(was_positive, ['{tables.FLAG_PREVIOUS_POSITIVE}'], []),
        if(stays_positive, ['{tables.FLAG_NEXT_POSITIVE}'], [])), []) AS flags
FROM folded JOIN series USING (number) LEFT JOIN sets USING (numbers)
"""
_MEMBERS: Final = f"""
SELECT {_COMMON}, "set", kind, sets.topic, partitions, clients, min(batch_of(s)) AS batch
FROM sets JOIN folded USING (numbers) JOIN series USING (number) GROUP BY ALL
"""
_SCRAPES: Final = f"""
SELECT {_PLACED}, *, 0::BIGINT AS dropped_series, catalogue_in_force() AS catalogue,
    attempts_between(s - took_us + late_us, e - took_us, offset_us, interval_us)::INT AS scrapes,
    scrapes * each AS beans, scrapes * lasted_us / 1e6 AS seconds_total,
    if(scrapes > 0, lasted_us / 1e6, 0) AS seconds_max
FROM parts('attempts') WHERE e > s
"""
_EVENTS: Final = f"""
SELECT {_COMMON}, batch_of(at_us) AS batch, make_timestamptz(at_us)::DATE AS date,
    make_timestamptz(at_us) AS at, source, kind, topic, partition, old, "new",
    NULL::VARCHAR AS "user", NULL::VARCHAR AS client_id, NULL::VARCHAR AS "group"
FROM noticed
"""
