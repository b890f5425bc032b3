"""The decision whether a report may call something good: one function for every output.

A question is answered as good only if enough of its own expected time was observed. Page, terminal,
mail, webhook, JSON, CSV, ``explain``, notebooks and views use this decision. Each question
is declared next to its records; ``facts/report_record.py`` lists them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.metrics import families, roles_of, shipped
from lakehouse.core.periods import length, overlap
from lakehouse.core.subjects import FLOOR_PERCENT, State, is_whole, state_of
from lakehouse.report import figures
from lakehouse.report.facts.fields import Means, Question, Rows
from lakehouse.report.figures import Facts, Row, span_of
from lakehouse.tables.agent_names import role_of

_WHOLE_CLUSTER: Final = {"metadata_log", "partitions"}
"""Families that read the whole cluster from one source."""

_BY_ADMIN: Final = {"offsets", "partitions", "leaders", "topology", "quota_limits"}
"""Families that the Admin API answers."""

_ZERO_IF_ABSENT: Final = {"idle", "zero"}
"""Meanings of an absent bean that make its absence a reading."""


class Evidence(NamedTuple):
    """The state of one question of a report, and the observed time that it rests on."""

    question: Annotated[str, Means("name of the question or section")]
    state: Annotated[State, Means(
        "bad, good, partly_known, not_known, not_collected or not_applicable")]  # fmt: skip
    observed_percent: Annotated[float | None, Means(
        "coverage of its own sources, percent; empty: nothing was expected")] = None  # fmt: skip
    expected_us: Annotated[int | None, Means(
        "expected time of its sources, added up, microseconds")] = None  # fmt: skip
    observed_us: Annotated[int | None, Means("observed time of that, microseconds")] = None
    subjects_known: Annotated[int | None, Means(
        "number of subjects with data; empty: they are not listed")] = None  # fmt: skip
    subjects_unknown: Annotated[int, Means("number of subjects without data")] = 0
    reason: Annotated[str | None, Means(
        "reason if nothing, or nothing good of a bad question, is known")] = None  # fmt: skip

    @property
    def is_whole(self) -> bool:
        """Return True if nearly all expected time of every subject was observed."""
        return self.is_observed and not self.subjects_unknown

    @property
    def is_observed(self) -> bool:
        """Return True if nearly all expected time of the sources was observed."""
        return is_whole(self.observed_percent)

    @property
    def is_answered(self) -> bool:
        """Return True if there is something to state, be it bad or good."""
        return self.state in ("bad", "good", "partly_known")

    def coverage_clause(self, noun: str) -> str:
        """Return how much of some subjects was observed; empty if that is nearly everything."""
        parts = []
        if self.observed_percent is not None and not self.is_observed:
            parts.append(f"coverage {display.per_cent(self.observed_percent)}")
        if self.subjects_unknown:
            parts.append(f"{display.plural(self.subjects_unknown, noun)} without data")
        return display.untied("; ".join(parts))


@dataclass(frozen=True, slots=True)
class Time:
    """Expected and observed time of the sources of a question, added up (µs)."""

    expected_us: int = 0
    observed_us: int = 0

    @property
    def percent(self) -> float | None:
        """The observed share; None: nothing was expected."""
        return 100 * self.observed_us / self.expected_us if self.expected_us else None

    def state(self, floor: float) -> State:
        """Return the state of a question on this time that has nothing bad."""
        return state_of(self.percent, floor)


def decide(facts: Facts, question: Question, *, bad: bool | None = None) -> Evidence:
    """Decide a question.

    Args:
        facts: The facts of a report, or their part on coverage.
        question: The question.
        bad: Whether it is bad. None: its figures decide.
    """
    floor = floor_of(facts)
    rows = _of_rows(facts, question)
    time = _least(observed(facts, question), _of_subjects(facts, question), _sum(rows))
    known, unknown = subjects(facts, question)
    state, reason = _without_data(facts, question, known, unknown) or (None, None)
    if state is None:
        state = time.state(floor)
        if state == "not_known":
            reason = _unobserved(facts, question, time)
    has_figures = question.has_figures and figures.value_at(facts, question.fact)
    is_open = any(row.get(key) is None for row, key in _listed(facts, question.open))
    is_open = is_open or not all(is_whole(one.percent) for one in rows)
    is_open = is_open or bool(dropped(facts, families(question.read)))
    if _is_any_bad(facts, question) if bad is None else bad:
        state = "bad"
    elif has_figures and state == "not_known":
        state, reason = "partly_known", None
    elif state == "good" and (unknown or is_open or _is_uncertain(facts, question)):
        state = "partly_known"
    counts = (time.expected_us, time.observed_us, known, unknown)
    return Evidence(question.name, state, time.percent, *counts, reason)


def decide_by_coverage(facts: Facts, question: Question) -> Evidence:
    """Decide a question whose figures are neither good nor bad; the floor applies."""
    return decide(facts, question._replace(has_figures=False))


def floor_of(facts: Facts) -> float:
    """Return the minimum coverage for a good answer, percent."""
    floor = facts.get("min_coverage_percent")
    return FLOOR_PERCENT if floor is None else float(floor)


# Observed time.


def observed(facts: Facts, question: Question) -> Time:
    """Return the expected and observed time of the sources that should answer a question.

    Of each source the family that was observed most counts. Hours in which a table of gold that
    the question reads is incomplete are not observed.
    """
    if question.read == "any":
        whole = figures.value_at(facts, "coverage") or {}
        time = Time(whole.get("expected_us") or 0, whole.get("observed_us") or 0)
        return _without_incomplete(facts, time, question.gold, len(whole.get("sources") or ()))
    times = _by_source(facts, families(question.read))
    return _without_incomplete(facts, _sum(times), question.gold, len(times))


def _by_source(facts: Facts, read_with: Collection[str]) -> list[Time]:
    by_source: dict[str, dict[str, Time]] = {}
    for row in figures.rows_at(facts, "coverage.sources"):
        time = Time(row.get("expected_us") or 0, row.get("observed_us") or 0)
        by_source.setdefault(str(row.get("source")), {})[str(row.get("family"))] = time
    own = {
        source: [time for family, time in of_source.items() if family in read_with]
        for source, of_source in by_source.items()
    }
    times = [_most(found) for found in own.values() if found]
    if times and not _is_of_whole_cluster(by_source, read_with):
        # A broker without scrapes of the family may differ from the other brokers.
        times += [
            Time(max(time.expected_us for time in by_source[source].values()))
            for source, found in own.items()
            if not found and role_of(source) == "broker"
        ]
    return times


def _most(times: Iterable[Time]) -> Time:
    rows = list(times)
    return Time(max(one.expected_us for one in rows), max(one.observed_us for one in rows))


def _is_of_whole_cluster(
    by_source: Mapping[str, Mapping[str, Time]], read_with: Collection[str]
) -> bool:
    return any(
        family in read_with and (family in _WHOLE_CLUSTER or role_of(source) == "cluster")
        for source, of_source in by_source.items()
        for family in of_source
    )


def _without_incomplete(facts: Facts, time: Time, gold: Collection[str], sources: int) -> Time:
    """Subtract the hours in which one of some tables is incomplete; none: any table."""
    period = span_of(facts, "from", "to")
    spans = [
        span
        for row in facts.get("incomplete") or ()
        if not gold or str(row.get("table")).rpartition("/")[2] in gold
        if (span := overlap(span_of(row, "from", "to"), period))
    ]
    lost = length(spans) * sources
    return Time(time.expected_us, max(0, time.observed_us - lost)) if lost else time


def _of_subjects(facts: Facts, question: Question) -> Time:
    """Return the expected and known time of the subjects of the objectives on a question."""
    rows = [
        row
        for row in _judged(facts, question)
        if (row["from"], row["to"]) == (facts["from"], facts["to"])
        and row.get("unknown_us") is not None
    ]
    keys = "expected_us", "unknown_us"
    expected, unknown = (sum(row.get(key) or 0 for row in rows) for key in keys)
    return Time(expected, max(0, expected - unknown))


def _of_rows(facts: Facts, question: Question) -> list[Time]:
    """Return the elapsed and known time of each row that has its unknown time.

    A source can hide a metric of a family that is read. A row that leaves the question open has no
    figure, so its time does not count.
    """
    is_open = [(rows.path, key) for rows in question.open for key in rows.keys]
    found = [
        row.get(key)
        for rows in question.unknown
        for row, key in _listed(facts, [rows])
        if not any(path == rows.path and row.get(figure) is None for path, figure in is_open)
    ]
    unknown = [us for us in found if us is not None]
    if not unknown:
        return []
    start, end = span_of(facts, "from", "to")
    elapsed_us = round((end - start) * facts.get("elapsed", 1))
    return [Time(elapsed_us, max(0, elapsed_us - us)) for us in unknown] if elapsed_us else []


def _sum(times: Sequence[Time]) -> Time:
    return Time(sum(one.expected_us for one in times), sum(one.observed_us for one in times))


def _is_uncertain(facts: Facts, question: Question) -> bool:
    """Return True if an objective on a question is uncertain for a subject.

    The mean share of many subjects can be high although one of them was hardly observed.
    """
    return any(row.get("verdict") == "uncertain" for row in _judged(facts, question))


def _judged(facts: Facts, question: Question) -> Iterator[Row]:
    """Yield the subjects of objectives on the metrics of a question."""
    wanted = set(question.judged)
    for objective in facts.get("objectives") or ():
        if wanted & set(objective.get("metrics") or ()):
            period = {"from": objective.get("from"), "to": objective.get("to")}
            yield from ({**period, **row} for row in objective.get("subjects") or ())


def _least(*times: Time) -> Time:
    """Return the time with the least observed share, if any time was expected."""
    return min(
        (time for time in times if time.expected_us),
        key=lambda time: time.observed_us / time.expected_us,
        default=times[0],
    )


# Subjects.


def subjects(facts: Facts, question: Question) -> tuple[int | None, int]:
    """Return how many subjects of a question have data, and how many have none.

    The first is None where the facts do not list them.
    """
    if not question.names:
        return None, 0
    if question.counted:
        found = figures.value_at(facts, question.counted)
        return (None if found is None else int(found)), 0
    if question.subjects is not None:
        (key,) = question.subjects.keys
        return _counted(
            (name_of(row, question.names), figures.value_at(row, key) is not None)
            for row in figures.rows_at(facts, question.subjects.path)
        )
    wanted = set(question.judged)
    if not any(wanted & set(one.get("metrics") or ()) for one in facts.get("objectives") or ()):
        return None, 0
    return _counted(
        (name_of(row, question.names), row.get("attainment") is not None)
        for row in _judged(facts, question)
    )


def _counted(found: Iterable[tuple[tuple[Any, ...], bool]]) -> tuple[int, int]:
    have: dict[tuple[Any, ...], bool] = {}
    for name, has_data in found:
        have[name] = has_data or have.get(name, False)
    return sum(have.values()), len(have) - sum(have.values())


def name_of(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    """Return the subject of a row, so that rows of one subject count once."""
    return tuple(row.get(name) for name in names)


def bad_rows(facts: Facts, rows: Rows) -> list[Row]:
    """Return the rows with a figure above zero."""
    return [row for row in figures.rows_at(facts, rows.path) if is_bad(row, rows.keys)]


def is_bad(row: Row, keys: Iterable[str]) -> bool:
    """Return True if one of a row's figures is above zero; a null figure is not."""
    return any(_amount(figures.value_at(row, key)) > 0 for key in keys)


def hidden(facts: Facts, question: Question) -> dict[str, tuple[float, float]]:
    """Return what brokers or controllers counted and hardly any series showed, by the check.

    The values are both times, seconds. Two readings of both differ by less than half.
    """
    found: dict[str, tuple[float, float]] = {}
    for check in question.checks:
        counted, shown = (
            [row.get(key) or 0.0 for row, key in _listed(facts, [rows])]
            for rows in (check.counted, check.shown)
        )
        # Each controller counts the whole cluster, a broker what it leads.
        whole = max(counted, default=0.0) if check.each_counts_all else float(sum(counted))
        if whole > 2 * (part := sum(shown) * check.scale):
            found[check.name] = whole, part
    return found


def hidden_texts(
    facts: Facts, question: Question, metrics: Collection[str] | None = None
) -> dict[str, str]:
    """Return the same in words, by the check; only checks that concern some metrics, if given."""
    texts = {}
    concerns = {check.name: check.concerns for check in question.checks}
    for name, times in hidden(facts, question).items():
        if metrics is not None and set(metrics).isdisjoint(concerns[name]):
            continue
        counted, shown = (display.seconds(one) for one in times)
        some = figures.sentence("some_shown" if times[1] else "none_shown", time=shown)
        texts[name] = figures.sentence(name, counted=counted, shown=some)
    return texts


def dropped(facts: Facts, read_with: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the number of series above the limit of some families, and of sources, by family."""
    found: dict[str, tuple[int, int]] = {}
    for row in figures.rows_at(facts, "coverage.sources"):
        if (series := row.get("dropped_series")) and (family := str(row["family"])) in read_with:
            most, sources = found.get(family, (0, 0))
            found[family] = max(most, series), sources + 1
    return found


def _is_any_bad(facts: Facts, question: Question) -> bool:
    is_counted = any(bad_rows(facts, rows) for rows in question.bad)
    return is_counted or bool(hidden(facts, question))


def _amount(value: Any) -> float:
    """Return a figure, 0 if it is null; of a list its length."""
    return len(value) if isinstance(value, list) else value or 0


def _listed(facts: Facts, listed: Iterable[Rows]) -> Iterator[tuple[Row, str]]:
    for rows in listed:
        yield from ((row, key) for row in figures.rows_at(facts, rows.path) for key in rows.keys)


# States without an answer.


def _without_data(
    facts: Facts, question: Question, known: int | None, unknown: int
) -> tuple[State, str] | None:
    """Return why a question has no answer whatever its coverage is; None: it can have one."""
    metric = question.read
    if metric == "any":
        return None
    if nothing_seen(facts):
        return "not_known", _reason("no_agent", facts)
    attempted = {row.get("family") for row in figures.rows_at(facts, "coverage.sources")}
    read_with = families(metric) & attempted
    if not read_with:
        return "not_collected", _off(facts, question)
    if nothing_seen(facts, metric):
        return "not_known", _unobserved(facts, question, Time())
    return _without_subject(facts, question, min(read_with), known, unknown)


def _without_subject(
    facts: Facts, question: Question, family: str, known: int | None, unknown: int
) -> tuple[State, str] | None:
    """Return why a family that was read has no answer; None: it can have one."""
    metric = question.read
    if question.not_applicable and known == 0 and not unknown:
        return "not_applicable", _reason("not_applicable", facts, why=question.not_applicable)
    if _is_absent(facts, metric):
        return "not_collected", _reason("absent", facts, metric=metric, family=family)
    if _is_null(facts, question):
        return "not_known", _reason("no_data", facts)
    if known == 0 and unknown:
        return "not_known", _reason(
            "no_subject",
            facts,
            subjects=display.plural(unknown, question.noun),
            have="has" if unknown == 1 else "have",
        )
    return None


def _is_null(facts: Facts, question: Question) -> bool:
    """Return True if the facts have nothing on a question."""
    found = figures.value_at(facts, question.fact) if question.fact else []
    return found is None or (question.needs_rows and not found)


def _is_absent(facts: Facts, metric: str) -> bool:
    """Return True if gold has nothing of a metric whose absence is not a reading."""
    collected = facts.get("collected")
    if collected is None or metric in collected:
        return False
    return not any(one.absent in _ZERO_IF_ABSENT for one in shipped() if one.metric == metric)


def _off(facts: Facts, question: Question) -> str:
    if is_out_of_reach(facts, question.read):
        return _reason("out_of_reach", facts)
    family = question.family or min(families(question.read))
    name = "disabled_in_admin" if family in _BY_ADMIN else "disabled"
    return _reason(name, facts, family=family)


def nothing_seen(facts: Facts, metric: str | None = None) -> bool:
    """Return True if no family with this metric was read; None: no family at all.

    A family that no agent reads has no row in the coverage, and counts as not read.
    """
    if metric is None:
        return not figures.value_at(facts, "coverage.observed_us")
    sources, read_with = figures.value_at(facts, "coverage.sources") or (), families(metric)
    return not any(row.get("observed_us") for row in sources if row.get("family") in read_with)


def is_out_of_reach(facts: Facts, metric: str) -> bool:
    """Return True if it is in MBeans only, and every source is a cluster read through Admin."""
    sources = [str(row.get("source")) for row in figures.value_at(facts, "coverage.sources") or ()]
    of_admin = bool(sources) and all(role_of(one) == "cluster" for one in sources)
    return of_admin and "cluster" not in roles_of(metric)


def _unobserved(facts: Facts, question: Question, time: Time) -> str:
    """Return why too little was observed."""
    failed = {
        row.get("source"): str(row.get("family"))
        for row in figures.rows_at(facts, "coverage.sources")
        if row.get("family") in families(question.read) and not row.get("observed_us")
    }
    if failed and not time.observed_us:
        family = min(failed.values())
        return _reason(
            "failed", facts, family=family, sources=display.plural(len(failed), "source")
        )
    share = "none" if not time.observed_us else f"only {display.per_cent(time.percent)}"
    return _reason("too_little", facts, share=share)


def _reason(name: str, facts: Facts, **values: Any) -> str:
    period = "week" if facts.get("week") else "period"
    return figures.sentence(name, period=period, **values)
