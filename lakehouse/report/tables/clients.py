"""Clients: requests and traffic, delays by quotas, consumer lag, and unread data loss.

Brokers count the errors, the latency and the traffic of requests.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from lakehouse.core import display, metrics
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import Rows, bounds_in
from lakehouse.report.facts.sections import consumer_groups, golden_signals, throttling
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.section import Claim, Part, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec, longest, most, size


def _success(row: Row) -> Cell:
    return Cell.bounded(bounds_in(row, "good"), display.percent)


def _errors_first(row: Row) -> tuple[float, float]:
    good = row.get("good_low")
    return (0.0 if good is None else 1 - good), row.get("errors") or 0.0


_REQUEST: Final = Column.word("Request", "request", "request")

BROKERS: Final = TableSpec(
    rows=Rows(golden_signals.Answers, "service.brokers", ("errors", "errors_low")),
    caption="Brokers with error responses",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        _REQUEST,
        Column.count("Errors", "errors"),
        Column.of("Success rate", _success, "good", "good_low", "good_high"),
    ),
    worst=_errors_first,
)

ERRORS: Final = TableSpec(
    rows=Rows(golden_signals.Error, "service.errors"),
    caption="Errors by code",
    noun="error",
    columns=(
        Column.name("Error", "error"),
        _REQUEST,
        Column.count("Responses", "answers"),
    ),
    worst=most("answers"),
)

LATENCY: Final = TableSpec(
    rows=Rows(golden_signals.Latency, "service.latency", ("slow_us", "slow_high_us")),
    caption="Brokers above the p99 limit",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        _REQUEST,
        Column.number("Limit", "threshold_ms", display.milliseconds),
        Column.time("Time above the limit", "slow_us"),
        Column.peak("p99, max", "p99_ms_max", display.milliseconds),
    ),
    worst=longest("slow"),
    quiet="did not exceed the limit",
)

TRAFFIC: Final = TableSpec(
    rows=Rows(golden_signals.Traffic, "service.topics"),
    caption="Traffic by topic",
    noun="topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.count("Records written", "records_in"),
        Column.count("Written", "bytes_in", size),
        Column.count("Read", "bytes_out", size),
        Column.count("Rejected", "bytes_rejected", size),
    ),
    file="traffic_topics",
    worst=lambda row: (row.get("bytes_in") or 0) + (row.get("bytes_out") or 0),
)


def _succeeded(facts: Facts) -> Part:
    """State the success rates, and the most frequent error."""
    decided = evidence.decide(facts, golden_signals.ANSWERS_QUESTION)
    requests = [
        row for row in (facts.get("service") or {}).get("requests") or () if row.get("good")
    ]
    if not decided.is_answered or not requests:
        return Part.of([decided.reason or "0 requests"])
    is_open = any(row.get(key) is None for row in requests for key in ("good_low", "errors_high"))
    of_all = " of the counted" if is_open or not decided.is_whole else " of"
    rates = [
        f"{display.percent(row['good'])}{of_all} {display.line(row['request'])} requests"
        for row in requests
    ]
    said = [f"{' and '.join(rates)} succeeded"]
    if errors := ERRORS.bad_rows(ERRORS.all_rows(facts)):
        top = errors[0]
        error = figures.name(top["error"]).isolated
        said.append(f"main error {error} ({display.count(top['answers'])})")
    said.append(decided.coverage_clause("broker"))
    notes = (*_away(facts), *("Errors in unobserved time are not known.",) * is_open)
    listings = (BROKERS.listing(facts), ERRORS.listing(facts))
    return Part.of(said, listings, notes)


def _away(facts: Facts) -> Iterator[str]:
    """Yield the time without observation; a broker that is down counts nothing."""
    rows = [row for row in BROKERS.all_rows(facts) if row.get("unknown_us")]
    if rows:
        longest = display.length(max(row["unknown_us"] for row in rows), "up")
        number = len(BROKERS.subjects(rows))
        verb = "was" if number == 1 else "were"
        yield f"{display.plural(number, 'broker')} {verb} not observed for up to {longest}."


def _fast(facts: Facts) -> Part:
    """State which brokers were slower than an objective allows, or the highest p99."""
    decided = evidence.decide(facts, golden_signals.LATENCY_QUESTION)
    if not decided.is_answered:
        return Part.of([decided.reason])
    rows = LATENCY.all_rows(facts)
    limited = [row for row in rows if row.get("threshold_ms") is not None]
    limits = {row["threshold_ms"] for row in limited}
    limit = f"{display.milliseconds(*limits)} p99" if len(limits) == 1 else "their p99 limit"
    figure = "slow_us" if limited else "p99_ms_max"
    judged = limited or rows
    known = {row["source"] for row in judged if row.get(figure) is not None}
    missing = {row["source"] for row in judged} - known
    bad = LATENCY.bad_rows(limited)
    said = []
    if bad:
        least = "at least " if not decided.is_whole or missing else ""
        brokers = f"{len(LATENCY.subjects(bad))} of {display.plural(len(known), 'broker')}"
        worst = f"worst {_where(bad[0])}, {length(bad[0].get('slow_us'))}"
        said += [f"{least}{brokers} exceeded {limit}", worst]
    elif limited and known:
        said.append(f"0 of {display.plural(len(known), 'broker')} exceeded {limit}")
    elif not limited:
        said.append("no objective limits the p99")
    if not bad:
        said += _highest(rows)
    if missing:
        said.append(f"{display.plural(len(missing), 'broker')} without data")
    said.append(decided.coverage_clause("broker"))
    return Part.of(said, [LATENCY.listing(facts, limited, decided)])


def _highest(rows: Sequence[Row]) -> list[str]:
    known = [row for row in rows if row.get("p99_ms_max") is not None]
    if not known:
        return []
    row = max(known, key=lambda row: row["p99_ms_max"])
    least = "" if all(row.get("unknown_us") == 0 for row in rows) else "at least "
    return [f"highest p99 {least}{display.milliseconds(row['p99_ms_max'])} ({_where(row)})"]


def _where(row: Row) -> str:
    return f"{LATENCY.columns[0].cell(row).sentence}, {_REQUEST.cell(row).sentence}"


def _moved(facts: Facts) -> Part:
    """State how much was written and read."""
    decided = evidence.decide_by_coverage(facts, golden_signals.TRAFFIC_QUESTION)
    rows = TRAFFIC.bad_rows(TRAFFIC.all_rows(facts))
    if not decided.is_answered or not rows:
        return Part.of([decided.reason or "0 topics with traffic"])
    keys = ("records_in", "bytes_in", "bytes_out")
    is_least = any(row.get(f"{key}_high") is None for row in rows for key in keys)
    end = "_low" if is_least else ""
    records, written, read = (sum(row.get(f"{key}{end}") or 0 for row in rows) for key in keys)
    least = "at least " if is_least or not decided.is_whole else ""
    said = [
        f"{least}{display.plural(round(records), 'record')} ({size(written)}) written, "
        f"{size(read)} read",
        decided.coverage_clause("topic"),
    ]
    return Part.of(said, [TRAFFIC.listing(facts)])


REQUESTS: Final = section("requests", "Requests and traffic", _succeeded, _fast, _moved)


CLIENTS: Final = TableSpec(
    rows=throttling.QUESTION.bad[0],
    caption="Clients throttled",
    noun="client",
    columns=(
        Column.name("Client", "user", "client_id"),
        Column.word("Quota for", "kind", "kind"),
        Column.time("Throttled", "throttled_us"),
        Column.number("Wait, mean", "throttle_ms_mean", display.milliseconds),
        Column.peak("Wait, max", "throttle_ms_max", display.milliseconds),
        Column.quantity("Rate, max", "rate_max", is_peak=True),
        Column.quantity("Quota", "quota"),
    ),
    worst=longest("throttled"),
    quiet="had no throttled time",
)

THROTTLING: Final = section(
    "throttling",
    "Client throttling",
    counted(throttling.QUESTION, Claim(CLIENTS, lambda row: length(row.get("throttled_us")))),
)


def _records(heading: str, when: str) -> Column:
    """Unread records: the ``most``, or the ``last`` that were reported."""
    keys = f"{when}.records_low", f"{when}.records_high"

    def cell(row: Row) -> Cell:
        behind = row.get(when) or {}
        return _between(behind.get("records_low"), behind.get("records_high"))

    return Column(heading, cell, keys, is_peak=when == "most")


def _between(low: float | None, high: float | None) -> Cell:
    """Return a number that a histogram gives between two bounds, with three digits."""
    if low and high and low < high:
        return Cell((display.rough_between(low, high),), order=high)
    return Cell.between(low, high, lambda one: display.rough(one or 0, "down"))


def _observed(facts: Facts) -> Facts:
    """Return the facts with the upper bounds of the lag while it was observed."""
    lag = facts.get("consumer_lag")
    if not lag:
        return facts
    found = {**lag}
    if lag.get("groups"):
        found["groups"] = [_of_group(row, facts) for row in lag["groups"]]
    if lag.get("partitions"):
        found["partitions"] = [_of_partition(row, facts) for row in lag["partitions"]]
    return {**facts, "consumer_lag": found}


def _of_group(row: Row, facts: Facts) -> Row:
    """Return a row of a group of one topic with the highest value of its timeline.

    The low bound of a histogram may be above that: then the highest value is not known.
    """
    topics = [one for one in facts["consumer_lag"]["groups"] if one["group"] == row["group"]]
    highs = [
        point[3]
        for line in facts.get("timelines") or ()
        if (line.get("name"), line.get("subject")) == ("consumer_lag", row["group"])
        for point in line.get("points") or ()
        if point[3] is not None
    ]
    most = row.get("most") or {}
    if len(topics) > 1:
        return row
    return {**row, "most": _with_high(most, highs)}


def _of_partition(row: Row, facts: Facts) -> Row:
    """Return a row of a partition with the highest value of its incidents."""
    keys = ("group", "topic", "partition")
    highs = [
        one["worst"]
        for one in facts.get("incidents") or ()
        if one["metric"] == metrics.PARTITION_LAG and all(one.get(key) == row[key] for key in keys)
    ]
    return _with_high(row, highs)


def _with_high(row: Row, highs: Sequence[float]) -> Row:
    high = max(highs, default=None)
    if row.get("records_high") is not None or high is None or high < (row.get("records_low") or 0):
        return row
    return {**row, "records_high": high}


def _of_records(row: Row) -> Cell:
    return _between(row.get("records_low"), row.get("records_high"))


def _age(row: Row) -> Cell:
    oldest = row.get("most") or {}
    return Cell.between(oldest.get("seconds_low"), oldest.get("seconds_high"), _seconds)


def _seconds(seconds: float | None) -> str:
    return length(None if seconds is None else seconds * 1e6)


def _behind(row: Row) -> str:
    topic = figures.name(row.get("topic")).isolated
    return f"unread records on {topic} for {length(row.get('behind_us'))}"


GROUPS_BEHIND: Final = TableSpec(
    rows=consumer_groups.LAG_QUESTION.bad[0],
    caption="Groups with unread records",
    noun="group",
    columns=(
        Column.name("Group", "group"),
        Column.name("Topic", "topic"),
        Column.time("Time with unread records", "behind_us"),
        _records("Unread records, max", "most"),
        Column.of("Oldest unread record, max age", _age, "most.seconds_low", "most.seconds_high"),
        _records("Unread records at the end", "last"),
    ),
    file="consumer_lag",
    worst=longest("behind"),
    quiet="did not lag",
)

PARTITIONS_BEHIND: Final = TableSpec(
    rows=Rows(consumer_groups.PartitionBehind, "consumer_lag.partitions"),
    caption="Partitions with more than 10,000 unread records",
    noun="partition",
    columns=(
        Column.name("Group", "group"),
        Column.partition(),
        Column.of("Unread records, max", _of_records, "records_low", "records_high"),
        Column.time("Time above 10,000", "above_us"),
    ),
    worst=most("records_low"),
    unknown="",
)

_part: Final = counted(
    consumer_groups.LAG_QUESTION, Claim(GROUPS_BEHIND, _behind), more=(PARTITIONS_BEHIND,)
)

LAG: Final = section("lag", "Consumer lag", lambda facts: _part(_observed(facts)))


def _lost(row: Row) -> str:
    low, high = row.get("offsets_low"), row.get("offsets_high")
    if high is None:
        return f"at least {display.count(low)} messages"
    return f"up to {display.count(high)} messages"


GROUPS_WITH_LOSS: Final = TableSpec(
    rows=consumer_groups.LOST_QUESTION.bad[0],
    caption="Groups affected",
    noun="group",
    columns=(
        Column.name("Group", "group"),
        Column.between("Messages (offsets)", "offsets"),
        Column.number("Partitions", "partitions"),
    ),
    file="lost_by_group",
    worst=most("offsets_high", "offsets_low"),
    quiet="lost no messages",
)

PARTITIONS_WITH_LOSS: Final = TableSpec(
    rows=Rows(
        consumer_groups.LostOffsets, "lost_before_read.groups", ("offsets_high", "offsets_low")
    ),
    caption="Messages lost by partition",
    noun="partition",
    columns=(
        Column.name("Group", "group"),
        Column.partition(),
        Column.between("Messages (offsets)", "offsets"),
    ),
    file="lost_before_read",
    worst=most("offsets_high", "offsets_low"),
    unknown="",
)

LOSS: Final = section(
    "loss",
    "Unread data loss",
    counted(
        consumer_groups.LOST_QUESTION, Claim(GROUPS_WITH_LOSS, _lost), more=(PARTITIONS_WITH_LOSS,)
    ),
)
