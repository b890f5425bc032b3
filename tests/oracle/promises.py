"""gold/sli in plain Python: good and bad time of every objective's subjects in a window."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.oracle import claims, limits, thresholds
from tests.oracle.attention import Attention
from tests.oracle.intervals import Span, at_best, count, good_time, length, union
from tests.oracle.rows import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakehouse.core.objective import Objective
    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Bronze, Run

_COVERAGE = "jmxlake.coverage"
TOLD = "kafka.topic.partitions"


def sli(bronze: Bronze, objectives: Sequence[Objective]) -> Rows:
    """Return times by cluster, window, objective, topic, user, client id, group and source."""
    runs = bronze.usable()
    attention = Attention(bronze)
    times: dict[str, Callable[[Objective], Rows]] = {
        "topic": lambda objective: _topics(runs, objective, attention),
        "client": lambda objective: _clients(runs, objective, attention),
        "group": lambda objective: _groups(runs, objective, attention),
        "source": lambda objective: _sources(bronze, objective),
    }
    found: Rows = {}
    for objective in objectives:
        if objective.events is None:  # events are counted where they are asked for
            found.update(times[objective.kind](objective))
            if objective.kind in {"group", "source"} and objective.metric != _COVERAGE:
                found.update(limits.sli(runs, objective, attention))
    return {key: row for key, row in found.items() if any(row.values()) or _of_client(key)}


def _of_client(key: Key) -> bool:
    """Return True for a client, whose row of zeros shows that it existed."""
    *_, user, client_id, _, _ = key
    return user is not None or client_id is not None


def _row(good: int, whole: claims.Atom) -> dict[str, int | None]:
    return {
        "good_us": good,
        "bad_us": length(whole.bad()),
        "bad_low_us": length(whole.surely()),
        "bad_high_us": length(whole.possibly()) + whole.spill(),
        "seen_us": None,
        "before_us": whole.spill(),
    }


def _topics(runs: list[Run], objective: Objective, attention: Attention) -> Rows:
    """Return times; good means that none is bad and a leader claims every partition.

    All claimants must have been scraped for the metric.
    """
    of_topic = [run for run in runs if run.level in ("partition", "topic")]
    subjects = claims.topics(of_topic)
    told = partitions_told(of_topic)
    attributes = _attributes(of_topic, objective.where)
    rows = {}
    for (cluster, window, metric, topic), subject in subjects.items():
        if metric != objective.metric:
            continue
        leaders = subjects.get((cluster, window, claims.UNDER_MIN_ISR, topic), claims.Subject())
        claimed = [span for atom in leaders.atoms.values() for span in atom.seen()]
        wanted = told(cluster, window, topic)
        whole = subject.whole()
        enough = partial(_cover, claimed, wanted)
        unasked = attention.missed_on(leaders.runs(), metric)
        above = objective.threshold
        bad = thresholds.above(subject, above) if above else whole.bad()
        never = [*bad, *unasked]
        good = good_time(whole.seen(), never, enough, claimed) if wanted is not None else 0
        row = _row(good, whole)
        # Of a partition that has no leader no broker claims anything; but that is known of it.
        known = subject if metric == claims.UNAVAILABLE else leaders
        told_of = [span for atom in known.atoms.values() for span in atom.seen()]
        row["seen_us"] = _wholly(whole.seen(), told_of, wanted, unasked)
        if above:
            row["bad_us"] = length(bad)
            row["bad_low_us"] = length(thresholds.surely_above(subject, above))
            row["bad_high_us"] = length(thresholds.possibly_above(subject, above))
            row["before_us"] = thresholds.spill(subject, above)
            row["bad_high_us"] += row["before_us"]
        own = attributes.get((cluster, window - window % HOUR, topic), {})
        if row["bad_high_us"] or own.items() >= objective.where.items():
            rows[(cluster, window, objective.name, topic, None, None, None, None)] = row
    return rows


def _wholly(
    seen: list[Span], told_of: list[Span], wanted: float | None, unasked: list[Span]
) -> int:
    """Return observed time in which so many partitions are reported, good or bad."""
    if wanted is None:
        return 0
    enough = partial(_cover, told_of, wanted)
    return good_time(seen, unasked, enough, told_of)


def _cover(claimed: list[Span], wanted: float, stretch: Span) -> bool:
    return count(claimed, stretch) >= wanted


def partitions_told(runs: list[Run]) -> Callable[[str, int, str], float | None]:
    """Return the number of partitions of a topic: reported in the window or hour, or claimed.

    The highest claimed partition of the window counts if the cluster reports no topology.
    """
    in_window: defaultdict[Key, list[float]] = defaultdict(list)
    in_hour: defaultdict[Key, list[float]] = defaultdict(list)
    claimed: defaultdict[Key, list[int]] = defaultdict(list)
    clusters = set()
    for run in runs:
        hour = run.window - run.window % HOUR
        if run.metric == TOLD and run.value is not None:
            in_window[(run.cluster, run.window, run.topic)].append(run.value)
            in_hour[(run.cluster, hour, run.topic)].append(run.value)
            clusters.add((run.cluster, hour))
        if run.level == "partition":
            numbers = run.partitions if run.partitions is not None else (run.partition,)
            claimed[(run.cluster, run.window, run.topic)].append(max(numbers) + 1)

    def told(cluster: str, window: int, topic: str) -> float | None:
        hour = window - window % HOUR
        own = in_window.get((cluster, window, topic)) or in_hour.get((cluster, hour, topic))
        if not own and (cluster, hour) not in clusters:
            own = claimed.get((cluster, window, topic))
        return max(own) if own else None

    return told


def _attributes(runs: list[Run], wanted: Iterable[str]) -> dict[Key, dict[str, float]]:
    found: defaultdict[Key, dict[str, float]] = defaultdict(dict)
    for run in runs:
        if run.metric in wanted and run.value is not None:
            own = found[(run.cluster, run.window - run.window % HOUR, run.topic)]
            own[run.metric] = max(run.value, own.get(run.metric, run.value))
    return found


def _clients(runs: list[Run], objective: Objective, attention: Attention) -> Rows:
    """Return times; good means no throttling and the greatest number of reports of the window.

    All brokers must have been scraped, because one that was not may throttle the client.
    """
    rows = {}
    for (cluster, window, metric, user, client_id), subject in claims.clients(runs).items():
        if metric == objective.metric:
            seen = [span for atom in subject.atoms.values() for span in atom.seen()]
            unasked = attention.missed_by_brokers(cluster, window, metric)
            down = attention.down(cluster, window, metric)
            good = at_best(seen, [*subject.whole().bad(), *unasked], down)
            key = (cluster, window, objective.name, None, user, client_id, None, None)
            rows[key] = _row(good, subject.whole())
    return rows


def _groups(runs: list[Run], objective: Objective, attention: Attention) -> Rows:
    """Return times; good means that the loss of all partitions is known to be zero.

    All brokers must have been scraped, because one that was not may lead a partition.
    """
    by_group: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        is_bound = run.counter and run.level == "group" and run.side
        if is_bound and run.value_name == objective.metric:
            by_group[(run.cluster, run.window, run.group)].append(run)
    rows = {}
    for (cluster, window, group), own in by_group.items():
        lows = union((r.start, r.end) for r in own if r.side == "low" and r.positive)
        highs = union((r.start, r.end) for r in own if r.side == "high" and r.positive)
        told = [r for r in own if r.side == "high"]
        unknown = [(r.start, r.end) for r in told if r.value is None]
        seen = [(r.start, r.end) for r in told for _ in range(r.series)]
        unread = attention.missed_by_brokers(cluster, window, objective.metric)
        good = at_best(seen, [*lows, *unknown, *unread])
        rows[(cluster, window, objective.name, None, None, None, group, None)] = {
            "good_us": good,
            "bad_us": length(lows),
            "bad_low_us": length(lows),
            "bad_high_us": length(union([*lows, *highs])),
            "seen_us": None,
            "before_us": 0,
        }
    return rows


def _sources(bronze: Bronze, objective: Objective) -> Rows:
    """Return times; bad means a failed attempt at a family. A skipped tick is not an attempt."""
    by_source: defaultdict[Key, list[Any]] = defaultdict(list)
    for row in bronze.accounts():
        if row.outcome != "skipped":
            by_source[(row.cluster, row.window, row.source)].append(row)
    rows = {}
    for (cluster, window, source), own in by_source.items():
        if objective.metric != _COVERAGE:
            continue
        bad = union((row.start, row.end) for row in own if row.outcome != "ok")
        seen = [(row.start, row.end) for row in own if row.outcome == "ok"]
        rows[(cluster, window, objective.name, None, None, None, None, source)] = {
            "good_us": at_best(seen, bad),
            **dict.fromkeys(("bad_us", "bad_low_us", "bad_high_us"), length(bad)),
            "seen_us": None,
            "before_us": 0,
        }
    return rows
