"""The figures at the start of a report, before comparison: each is a function of the facts.

A figure of time is the bad time of the subject of its objective that has most of it. The list of
objectives has the subject with the worst status, which may have less.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from lakehouse.core.metrics import COVERAGE, LEADERLESS, UNAVAILABLE
from lakehouse.core.subjects import is_whole
from lakehouse.report.evidence import hidden_texts
from lakehouse.report.facts.fields import Bounds, bounds_in, total
from lakehouse.report.facts.sections.golden_signals import ANSWERS, P99
from lakehouse.report.facts.sections.replication import MIN_ISR_QUESTION
from lakehouse.report.facts.sections.throttling import THROTTLES
from lakehouse.report.figures import Facts, Row, value_at

NOT_KNOWN: Final = Bounds()
NOTHING: Final[Row] = MappingProxyType({})


class Figure(NamedTuple):
    """A figure and its weeks before.

    Attributes:
        value: The figure with its bounds from observed time.
        unit: Its unit.
        now: The figure in the form of earlier weeks, greater is worse. Its bounds count unobserved
            time as good and as bad.
        past: The weeks before.
        worst: The row of the worst subject.
        own: The figure of that subject only.
        own_unit: Its unit.
        of: Total number of subjects.
        objective: Name of its objective.
        is_gap: Whether ``now`` and ``past`` are the complements of the shown shares.
    """

    value: Bounds
    unit: str
    now: Bounds
    past: Sequence[Bounds] = ()
    worst: Row = NOTHING
    own: Bounds = NOT_KNOWN
    own_unit: str = ""
    of: int | None = None
    objective: str | None = None
    is_gap: bool = False

    def at_least(self) -> Self:
        """Return the figure without upper bounds."""
        shown, now, own = (one._replace(high=None) for one in (self.value, self.now, self.own))
        return self._replace(value=shown, now=now, own=own)


def weeks_of(facts: Facts) -> list[str]:
    """Return the names of the weeks of histories, oldest first."""
    histories = (one.get("history") for one in facts.get("objectives") or ())
    return [row["week"] for row in next(filter(None, histories), [])]


def _past(facts: Facts, objective: Row | None) -> list[Row]:
    """Return the weeks of an objective before the week of the report."""
    return [*((objective or {}).get("history") or ())][:-1] if facts.get("week") else []


def _weeks_before(facts: Facts, path: str) -> list[Row]:
    """Return the rows of earlier weeks; an empty row for a week without one."""
    by_name = {row["week"]: row for row in value_at(facts, path) or ()}
    names = weeks_of(facts)[:-1] if facts.get("week") else []
    return [by_name.get(name, NOTHING) for name in names]


def _objectives(facts: Facts, *metrics: str) -> list[Row]:
    """Return the objectives on some metrics over the report's period."""
    over = {None, facts["from"]}, {None, facts["to"]}
    return [
        one
        for one in facts.get("objectives") or ()
        if set(metrics) & set(one.get("metrics") or ())
        and one.get("from") in over[0]
        and one.get("to") in over[1]
        and one.get("level") != "cluster"
    ]


def _name(objective: Row | None) -> str | None:
    return None if objective is None else str(objective["name"])


def _most(rows: Iterable[Row], key: str) -> Row:
    """Return the row with the greatest known figure above 0; without one an empty row."""
    return max((row for row in rows if row.get(key)), key=lambda row: row[key], default=NOTHING)


def _widened(bad: Bounds, unknown_us: float | None) -> Bounds:
    """Return bad time with unobserved time as bad in its upper bound."""
    if bad.high is None or unknown_us is None:
        return bad._replace(high=None)
    return bad._replace(high=bad.high + unknown_us)


_METRICS: Final[Mapping[str, str]] = {
    "writes_unavailable": UNAVAILABLE,
    "no_leader": LEADERLESS,
}
"""Metrics of the figures on availability."""


def counted_more(facts: Facts, name: str) -> str:
    """Return what brokers or controllers counted beyond a figure; empty if nothing."""
    metrics = [_METRICS[name]] if name in _METRICS else []
    return "; ".join(hidden_texts(facts, MIN_ISR_QUESTION, metrics).values())


# Times.


def _bad_time(metrics: Sequence[str], path: str, key: str) -> Callable[[Facts], Figure]:
    """Return a figure: bad time of the worst subject of an objective, otherwise of a table."""

    def compute(facts: Facts) -> Figure:
        for one in _objectives(facts, *metrics):
            if not one["subjects"]:
                continue
            past = [
                _widened(bounds_in(week, "bad_us"), week.get("unknown_us"))
                if week["verdict"] != "no_data"
                else NOT_KNOWN
                for week in _past(facts, one)
            ]
            return _of_subjects(one["subjects"], past, one["name"])
        rows = value_at(facts, path) or ()
        worst = _most(rows, key)
        of_none = next((row for row in rows if row.get(key) is not None), NOTHING)
        return _of_worst(worst, bounds_in(worst or of_none, key), (), None)

    return compute


def _of_subjects(subjects: Sequence[Row], past: Sequence[Bounds], objective: str) -> Figure:
    """Return the figure of the subject with most bad time; a subject without data may have more."""
    known = [row for row in subjects if row.get("attainment") is not None]
    worst = max(known, key=lambda row: row.get("bad_us") or 0, default=subjects[0])
    if not known or (len(known) < len(subjects) and not worst.get("bad_us")):
        return _of_worst(subjects[0], NOT_KNOWN, past, objective)
    bad = bounds_in(worst, "bad_us")
    if len(known) < len(subjects):
        bad = bad._replace(high=None)
    figure = _of_worst(worst, bad, past, objective)
    every = [_widened(bounds_in(row, "bad_us"), row.get("unknown_us")).high for row in known]
    highs = [high for high in (figure.now.high, *every) if high is not None]
    is_open = len(highs) <= len(every)
    return figure._replace(now=figure.now._replace(high=None if is_open else max(highs)))


def _of_worst(worst: Row, bad: Bounds, past: Sequence[Bounds], objective: str | None) -> Figure:
    now = _widened(bad, worst.get("unknown_us"))
    return Figure(bad, "us", now, past, worst, bad, objective=objective)


# Lost messages.


def _lost(facts: Facts) -> Figure:
    """Return the offsets that all groups lost; the worst group lost most."""
    totals = value_at(facts, "lost_before_read.totals")
    objective = next(iter(_objectives(facts, "kafka.group.non_consumed")), None)
    name = _name(objective)
    past = [_lost_in(facts, week) for week in _past(facts, objective)]
    if totals is None:
        return Figure(NOT_KNOWN, "offsets", NOT_KNOWN, past, objective=name)
    value = _sum_of(totals)
    subjects = objective["subjects"] if objective else [{}]
    is_open = any(row.get("unknown_us") != 0 for row in subjects)
    worst = totals[0] if totals else {}
    return Figure(
        value, "offsets", value._replace(high=None) if is_open else value, past, worst,
        _sum_of(totals[:1]) if totals else NOT_KNOWN, objective=name,
    )  # fmt: skip


def _sum_of(rows: Iterable[Row]) -> Bounds:
    """Return the offsets of some groups: the upper bound, or without one the lower bound."""
    lost = total(Bounds(None, row["offsets_low"], row["offsets_high"]) for row in rows)
    return lost._replace(value=lost.low if lost.high is None else lost.high)


def _lost_in(facts: Facts, week: Row) -> Bounds:
    """Return the offsets of a week before; not known if no group was observed."""
    rows = value_at(facts, "lost_before_read.weeks")
    own = [row for row in rows or () if row["week"] == week["week"]]
    if rows is None or (week["verdict"] == "no_data" and not own):
        return NOT_KNOWN
    lost = _sum_of(own)
    return lost if week.get("unknown_us") == 0 else lost._replace(high=None)


# Clients.


def _throttled(facts: Facts) -> Figure:
    """Return the number of throttled clients; the worst client was throttled longest."""
    section, objectives = facts.get("throttling") or {}, _objectives(facts, *THROTTLES.values())
    rows = section.get("clients") or ()
    worst = _most(rows, "throttled_us")
    value = bounds_in(section, "clients_throttled")
    first = next((one for one in objectives if _has(one, worst)), None)
    first = first or next(iter(objectives), None)
    return Figure(
        value, "clients", _with_unsure(value, rows, objectives),
        _clients_of_weeks(facts, objectives), worst, bounds_in(worst, "throttled_us"), "us",
        section.get("clients_known") if _counts_clients(facts) else None, _name(first),
    )  # fmt: skip


def _counts_clients(facts: Facts) -> bool:
    """Return True if an objective judges clients, so that the number of known clients is known."""
    metrics = {metric for one in facts.get("objectives") or () for metric in one.get("metrics", ())}
    return not metrics.isdisjoint(THROTTLES.values())


def _with_unsure(value: Bounds, rows: Sequence[Row], objectives: Sequence[Row]) -> Bounds:
    """Return the number of throttled clients; its upper bound has clients with low coverage."""
    seen: dict[tuple[Any, ...], bool] = {}
    for row in (row for one in objectives for row in one["subjects"]):
        seen[_client(row)] = seen.get(_client(row), True) and _is_observed(row)
    bad = {_client(row) for row in rows if row.get("throttled_high_us")}
    unsure = sum(not is_seen for client, is_seen in seen.items() if client not in bad)
    return value if value.high is None else value._replace(high=value.high + unsure)


def _client(row: Row) -> tuple[Any, ...]:
    return row.get("user"), row.get("client_id")


def _has(objective: Row, client: Row) -> bool:
    """Return True if an objective is on the kind of request that a client was throttled for."""
    return THROTTLES.get(str(client.get("kind"))) in {*map(str, objective["metrics"])}


def _is_observed(row: Row) -> bool:
    expected_us, unknown_us = row.get("expected_us"), row.get("unknown_us")
    if not expected_us or unknown_us is None:
        return False
    return is_whole(100 * (expected_us - unknown_us) / expected_us)


def _clients_of_weeks(facts: Facts, objectives: Sequence[Row]) -> list[Bounds]:
    """Return how many clients were throttled in the weeks before, by the trends."""
    trends = facts.get("trends") or {}
    names: Sequence[str] = trends.get("weeks") or ()
    chosen = {one["name"] for one in objectives}
    subjects = [
        row
        for one in trends.get("objectives") or ()
        if one["name"] in chosen
        for row in one["subjects"]
    ]
    found = []
    for place, week in enumerate(_past(facts, objectives[0] if objectives else None)):
        rows = [one["history"][place] for one in objectives]
        if week["week"] not in names or all(row["verdict"] == "no_data" for row in rows):
            found.append(NOT_KNOWN)
            continue
        at = names.index(week["week"])
        weeks = [(_client(row), row["weeks"][at]) for row in subjects if row["weeks"][at]]
        value, low, high = (
            len({client for client, one in weeks if one[key] > 0})
            for key in ("bad_us", "bad_low_us", "bad_high_us")
        )
        counts = [row.get(key) for row in rows for key in ("uncertain", "no_data")]
        found.append(Bounds(value, low, None if None in counts else high + sum(map(int, counts))))
    return found


# Coverage.


def _coverage(facts: Facts) -> Figure:
    """Return the coverage of all families of all sources, and the worst family of a source.

    The objective on scrapes ignores the time before the first scrape of a family. If it is met with
    more unobserved time than its target permits, this is not a figure of it.
    """
    section = facts.get("coverage") or {}
    past = [_gap(row.get("percent")) for row in _weeks_before(facts, "coverage.weeks")]
    gap = _gap(section.get("percent"))
    objective = next(iter(_objectives(facts, COVERAGE)), None)
    worst = _most(section.get("sources") or (), "unknown_us")
    us = worst.get("unknown_us")
    is_other = objective is not None and (gap.value or 0) > 1 - objective["target"]
    is_other = is_other and (objective or {}).get("status") in {"met", "on_track"}
    return Figure(
        rest(gap), "share", gap, past, worst, Bounds(us, us, us), "us",
        objective=None if is_other else _name(objective), is_gap=True,
    )  # fmt: skip


def _gap(percent: float | None) -> Bounds:
    share = None if percent is None else 1 - percent / 100
    return Bounds(share, share, share)


def rest(share: Bounds) -> Bounds:
    """Return the rest of a share."""
    value, low, high = (None if one is None else 1 - one for one in share)
    return Bounds(value, high, low)


# Requests.


def _failed(facts: Facts) -> Figure:
    """Return the share of partitions in answers of brokers that had an error."""
    rows = value_at(facts, "service.requests") or []
    objective = next(iter(_objectives(facts, *ANSWERS.values())), None)
    value = _share(rows)
    brokers = value_at(facts, "service.brokers") or []
    shares = [(row, _share([row])) for row in brokers]
    known = [one for one in shares if one[1].value is not None]
    nothing: tuple[Row, Bounds] = ({}, NOT_KNOWN)
    worst, own = max(known, key=lambda one: one[1].value or 0, default=nothing)
    past = [
        Bounds(row["errors"] / row["answers"]) if row else NOT_KNOWN
        for row in _weeks_before(facts, "service.weeks")
    ]
    return Figure(value, "share", value, past, worst, own, objective=_name(objective))


def _share(rows: Sequence[Row]) -> Bounds:
    """Return the share of errors in all answers."""
    errors = total(bounds_in(row, "errors") for row in rows)
    answers = total(bounds_in(row, "answers") for row in rows)
    if not rows or errors.value is None or not answers.value:
        return NOT_KNOWN
    value = errors.value / answers.value
    low = errors.low / answers.high if errors.low and answers.high else 0.0
    if errors.high is None or not answers.low:
        return Bounds(value, min(low, value))
    return Bounds(value, min(low, value), max(value, min(1.0, errors.high / answers.low)))


def _slow(facts: Facts) -> Figure:
    """Return the time above the limit of an objective; without one the greatest p99."""
    figure = _bad_time((P99["produce"],), "", "")(facts)
    if figure.objective:
        return figure
    rows = [row for row in value_at(facts, "service.latency") or () if row["request"] == "produce"]
    worst = _most(rows, "p99_ms_max")
    most = worst.get("p99_ms_max")
    is_whole = all(row.get("unknown_us") == 0 for row in rows)
    value = Bounds(most, most, most if is_whole else None)
    return Figure(value, "ms", value, (), worst, value)


ALWAYS: Final[Mapping[str, tuple[str, Callable[[Facts], Figure]]]] = {
    "writes_unavailable": (
        "min-isr",
        _bad_time((UNAVAILABLE,), "min_isr.topics", "unavailable_any_us"),
    ),
    "no_leader": (
        "min-isr",
        _bad_time((LEADERLESS,), "min_isr.topics", "leaderless_any_us"),
    ),
    "messages_lost": ("lost", _lost),
    "clients_throttled": ("throttling", _throttled),
    "coverage": ("", _coverage),
}
"""Name of a figure, its question, and the function that computes it."""

COLLECTED: Final[Mapping[str, tuple[str, Callable[[Facts], Figure]]]] = {
    "requests_failed": ("availability", _failed),
    "produce_latency": ("latency", _slow),
}
"""The same for figures that not every agent collects."""
