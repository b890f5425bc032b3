"""The figures that a report starts with: their bounds, the change to last week, eight weeks.

They are computed from the other facts, because those of a team are made of the team's rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from lakehouse.core.metrics import COVERAGE, LEADERLESS, UNAVAILABLE
from lakehouse.core.observed_share import WHOLE_PERCENT
from lakehouse.report.evidence import floor_of
from lakehouse.report.facts.fields import Bounds, bounds_in, total
from lakehouse.report.facts.kafka.golden_signals import ANSWERS, P99
from lakehouse.report.facts.kafka.throttling import THROTTLES
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Facts, Row

MOST: Final = 6
"""Maximum number of key figures."""

_SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
_SAME: Final = 0.0001
"""Shares that differ by less are the same."""

NOT_KNOWN: Final = Bounds()
_NONE: Final[Row] = MappingProxyType({})


class PreviousFigure(NamedTuple):
    """A key figure in the week before; unobserved time is good in one bound and bad in the other.

    Attributes:
        week: The name of that week.
        value: The figure.
        low: Its lower bound.
        high: Its upper bound; None: unobserved time may hide more.
    """

    week: str
    value: float
    low: float | None
    high: float | None


class KeyFigure(NamedTuple):
    """A figure of all subjects, or of the worst.

    Attributes:
        name: ``writes_unavailable``, ``no_leader``, ``messages_lost``, ``clients_throttled``,
            ``coverage``, ``requests_failed`` or ``produce_latency``.
        state: ``known``, ``not_known`` or ``not_collected``.
        reason: Why it is not known.
        value: The figure; its upper bound is null where unobserved time may hide more.
        unit: ``us``, ``offsets``, ``clients``, ``share`` or ``ms``.
        of: How many clients there are in all.
        topic: Name of the worst subject, like the next four.
        user: See topic.
        client_id: See topic.
        group: See topic.
        source: See topic.
        subject_value: The figure of the worst subject alone.
        subject_unit: Its unit.
        unknown_us: Unobserved time of the worst subject.
        objective: The objective that is on it.
        previous: The week before; None: it is not known, or this week is not over.
        change: ``worse`` or ``better`` if the bounds of both weeks do not overlap, else
            ``unclear``; ``same`` if nothing differs; ``none`` without ``previous``.
        history: Eight weeks, oldest first, greater is worse: of ``coverage`` the share that was not
            observed. None: not known.
    """

    name: str
    state: str
    reason: str | None
    value: Bounds
    unit: str
    of: int | None
    topic: str | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    subject_value: Bounds
    subject_unit: str
    unknown_us: int | None
    objective: str | None
    previous: PreviousFigure | None
    change: str
    history: list[float | None]


class _Figure(NamedTuple):
    """A figure before it is compared.

    Attributes:
        value: The figure and its bounds by what was observed.
        unit: Its unit.
        now: The figure as the weeks before have it, greater is worse, its bounds with unobserved
            time as good and as bad.
        past: The weeks before.
        worst: The row of the worst subject.
        own: The figure of that alone.
        own_unit: Its unit.
        of: How many there are in all.
        objective: Name of the objective that is on it.
        is_gap: Whether ``now`` and ``past`` are the rest of the shares that are shown.
    """

    value: Bounds
    unit: str
    now: Bounds
    past: Sequence[Bounds] = ()
    worst: Row = _NONE
    own: Bounds = NOT_KNOWN
    own_unit: str = ""
    of: int | None = None
    objective: str | None = None
    is_gap: bool = False

    def at_least(self) -> Self:
        """Return the figure without upper bounds."""
        shown, now, own = (one._replace(high=None) for one in (self.value, self.now, self.own))
        return self._replace(value=shown, now=now, own=own)


def key_figures(facts: Facts) -> list[KeyFigure]:
    """Return the key figures.

    Args:
        facts: All other facts, ``answers`` included.
    """
    always = [_stated(facts, name, *spec) for name, spec in _ALWAYS.items()]
    more = [_stated(facts, name, *spec) for name, spec in _COLLECTED.items()]
    more = [one for one in more if one.state == "known"]
    more.sort(key=lambda one: one.objective is None)
    return [*always, *more][:MOST]


def _stated(
    facts: Facts, name: str, question: str, compute: Callable[[Facts], _Figure]
) -> KeyFigure:
    figure, evidence, weeks = compute(facts), _evidence(facts, question), _weeks(facts)
    state = _STATES.get(str(evidence["state"]), "known")
    if figure.value.value is None and state == "known":
        state = "not_known"
    if state != "known":
        figure = figure._replace(
            value=NOT_KNOWN, now=NOT_KNOWN, worst=_NONE, own=NOT_KNOWN, of=None
        )
    elif _is_under_floor(facts, evidence):
        figure = figure.at_least()
    previous, change = _compared(facts, figure, weeks)
    every = [one.value for one in (*figure.past, figure.now)] if weeks else []
    return KeyFigure(
        name, state, evidence.get("reason") if state != "known" else None, figure.value,
        figure.unit, figure.of, **{key: figure.worst.get(key) for key in _SUBJECT},
        subject_value=figure.own, subject_unit=figure.own_unit or figure.unit,
        unknown_us=figure.worst.get("unknown_us"), objective=figure.objective, previous=previous,
        change=change, history=[*[None] * (len(weeks) - len(every)), *every],
    )  # fmt: skip


_STATES: Final = {
    "not_known": "not_known",
    "not_collected": "not_collected",
    "not_applicable": "not_collected",
}
"""States of evidence without a figure."""


def _evidence(facts: Facts, question: str) -> Row:
    """Return the decision on a question; a figure without one needs none."""
    if not question:
        return {"state": "good"}
    rows = (row for row in facts.get("answers") or () if row["question"] == question)
    return next(rows, {"state": "not_known"})


def _is_under_floor(facts: Facts, evidence: Row) -> bool:
    percent = evidence.get("observed_percent")
    return percent is not None and percent < floor_of(facts)


def _compared(
    facts: Facts, figure: _Figure, weeks: Sequence[str]
) -> tuple[PreviousFigure | None, str]:
    """Return the week before and the change; nothing while this week is not over."""
    then = figure.past[-1] if figure.past else NOT_KNOWN
    is_over = facts.get("week") and not facts.get("running")
    if None in (then.value, figure.now.value) or not is_over:
        return None, "none"
    shown = _rest(then) if figure.is_gap else then
    previous = PreviousFigure(weeks[-2], shown.value or 0, shown.low, shown.high)
    return previous, change_of(figure.now, then, figure.unit)


def change_of(now: Bounds, before: Bounds, unit: str = "") -> str:
    """Return what changed from one week to the next, where greater is worse."""
    if now.value is None or before.value is None:
        return "none"
    least = _SAME if unit == "share" else 0
    if now == before and now.low == now.high:
        return "same"
    if now.low is not None and before.high is not None and now.low > before.high + least:
        return "worse"
    if now.high is not None and before.low is not None and now.high + least < before.low:
        return "better"
    is_exact = now.low == now.high and before.low == before.high
    return "same" if least and is_exact and None not in (now.high, before.high) else "unclear"


def _weeks(facts: Facts) -> list[str]:
    """Return the names of the weeks of histories, oldest first."""
    histories = (one.get("history") for one in facts.get("objectives") or ())
    return [row["week"] for row in next(filter(None, histories), [])]


def _past(facts: Facts, objective: Row | None) -> list[Row]:
    """Return the weeks of an objective before that of the report."""
    return [*((objective or {}).get("history") or ())][:-1] if facts.get("week") else []


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
    return max((row for row in rows if row.get(key)), key=lambda row: row[key], default=_NONE)


def _widened(bad: Bounds, unknown_us: float | None) -> Bounds:
    """Return bad time with unobserved time as bad in its upper bound."""
    if bad.high is None or unknown_us is None:
        return bad._replace(high=None)
    return bad._replace(high=bad.high + unknown_us)


# Times.


def _bad_time(metrics: Sequence[str], path: str, key: str) -> Callable[[Facts], _Figure]:
    """Return a figure: the bad time of the worst subject under an objective, else of a table."""

    def compute(facts: Facts) -> _Figure:
        for one in _objectives(facts, *metrics):
            if not one["subjects"]:
                continue
            past = [
                _widened(bounds_in(week, "bad_us"), week.get("unknown_us"))
                if week["verdict"] != "no_data"
                else NOT_KNOWN
                for week in _past(facts, one)
            ]
            worst = one["subjects"][0]
            bad = NOT_KNOWN if worst.get("attainment") is None else bounds_in(worst, "bad_us")
            return _of_worst(worst, bad, past, one["name"])
        rows = value_at(facts, path) or ()
        worst = _most(rows, key)
        of_none = next((row for row in rows if row.get(key) is not None), _NONE)
        return _of_worst(worst, bounds_in(worst or of_none, key), (), None)

    return compute


def _of_worst(worst: Row, bad: Bounds, past: Sequence[Bounds], objective: str | None) -> _Figure:
    now = _widened(bad, worst.get("unknown_us"))
    return _Figure(bad, "us", now, past, worst, bad, objective=objective)


# Lost messages.


def _lost(facts: Facts) -> _Figure:
    """Offsets that all groups lost; the worst lost most."""
    totals = value_at(facts, "lost_before_read.totals")
    objective = next(iter(_objectives(facts, "kafka.group.non_consumed")), None)
    name = _name(objective)
    past = [_lost_in(facts, week) for week in _past(facts, objective)]
    if totals is None:
        return _Figure(NOT_KNOWN, "offsets", NOT_KNOWN, past, objective=name)
    value = _sum_of(totals)
    subjects = objective["subjects"] if objective else [{}]
    is_open = any(row.get("unknown_us") != 0 for row in subjects)
    worst = totals[0] if totals else {}
    return _Figure(
        value, "offsets", value._replace(high=None) if is_open else value, past, worst,
        _sum_of(totals[:1]) if totals else NOT_KNOWN, objective=name,
    )  # fmt: skip


def _sum_of(rows: Iterable[Row]) -> Bounds:
    """Return the offsets of some groups: the most, or the least where the most is not known."""
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


def _throttled(facts: Facts) -> _Figure:
    """How many clients were throttled; the worst was for longest."""
    section, objectives = facts.get("throttling") or {}, _objectives(facts, *THROTTLES.values())
    rows = section.get("clients") or ()
    worst = _most(rows, "throttled_us")
    value = bounds_in(section, "clients_throttled")
    first = next((one for one in objectives if _has(one, worst)), None)
    first = first or next(iter(objectives), None)
    return _Figure(
        value, "clients", _with_unsure(value, rows, objectives),
        _clients_of_weeks(facts, objectives), worst, bounds_in(worst, "throttled_us"), "us",
        section.get("clients_known"), _name(first),
    )  # fmt: skip


def _with_unsure(value: Bounds, rows: Sequence[Row], objectives: Sequence[Row]) -> Bounds:
    """Return how many clients were throttled; at most, with those that were hardly observed."""
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
    metrics: Sequence[str] = objective["metrics"]
    return THROTTLES.get(str(client.get("kind"))) in metrics


def _is_observed(row: Row) -> bool:
    expected_us, unknown_us = row.get("expected_us"), row.get("unknown_us")
    if not expected_us or unknown_us is None:
        return False
    return 100 * (expected_us - unknown_us) >= WHOLE_PERCENT * expected_us


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


def _coverage(facts: Facts) -> _Figure:
    """The observed share of the expected time of all families of all sources."""
    section = facts.get("coverage") or {}
    percent_of = {row["week"]: row["percent"] for row in section.get("weeks") or ()}
    past = [_gap(percent_of.get(name)) for name in _weeks(facts)[:-1]] if facts.get("week") else []
    gap = _gap(section.get("percent"))
    objective = next(iter(_objectives(facts, COVERAGE)), None)
    subjects = (objective or {}).get("subjects") or ()
    worst = subjects[0] if subjects else {}
    return _Figure(
        _rest(gap), "share", gap, past, worst, bounds_in(worst, "bad_us"), "us",
        objective=_name(objective), is_gap=True,
    )  # fmt: skip


def _gap(percent: float | None) -> Bounds:
    share = None if percent is None else 1 - percent / 100
    return Bounds(share, share, share)


def _rest(share: Bounds) -> Bounds:
    """Return the rest of a share."""
    value, low, high = (None if one is None else 1 - one for one in share)
    return Bounds(value, high, low)


# Requests.


def _failed(facts: Facts) -> _Figure:
    """The share of partitions in answers of brokers that had an error."""
    rows = value_at(facts, "service.requests") or []
    objective = next(iter(_objectives(facts, *ANSWERS.values())), None)
    value = _share(rows)
    brokers = value_at(facts, "service.brokers") or []
    shares = [(row, _share([row])) for row in brokers]
    known = [one for one in shares if one[1].value is not None]
    nothing: tuple[Row, Bounds] = ({}, NOT_KNOWN)
    worst, own = max(known, key=lambda one: one[1].value or 0, default=nothing)
    return _Figure(value, "share", value, (), worst, own, objective=_name(objective))


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


def _slow(facts: Facts) -> _Figure:
    """The time above the limit of an objective; without one the greatest p99."""
    figure = _bad_time((P99["produce"],), "", "")(facts)
    if figure.objective:
        return figure
    rows = [row for row in value_at(facts, "service.latency") or () if row["request"] == "produce"]
    worst = _most(rows, "p99_ms_max")
    most = worst.get("p99_ms_max")
    is_whole = all(row.get("unknown_us") == 0 for row in rows)
    value = Bounds(most, most, most if is_whole else None)
    return _Figure(value, "ms", value, (), worst, value)


_ALWAYS: Final[Mapping[str, tuple[str, Callable[[Facts], _Figure]]]] = {
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
"""The question that each rests on, and what it is."""

_COLLECTED: Final[Mapping[str, tuple[str, Callable[[Facts], _Figure]]]] = {
    "requests_failed": ("availability", _failed),
    "produce_latency": ("latency", _slow),
}
"""The same of figures that not every agent collects."""
