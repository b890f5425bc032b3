"""What was to be seen of each source and what was: the facts' coverage.

And how long topics were not wholly seen, and what that makes unknown of their partitions. Of a
topic time is unknown while it is neither good nor seen to be bad. But while one partition is bad,
another may be unseen: then it is unknown of the other one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from math import ceil
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import partitions as parts, tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.gold_rows import is_one_of
from lakehouse.metrics import UNAVAILABLE
from lakehouse.periods import iso
from lakehouse.report.lookup import touching

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

ANY_FAMILY: Final = "any"
"""Stands for the families of a source that nobody ever read."""


def coverage(gold: Gold, subjects: Sequence[Subject], now_us: int) -> Row:
    """What was to be seen and what was, per source and family."""
    told: defaultdict[str | None, dict[str, dict[str, Row]]] = defaultdict(dict)
    for row in gold.sums(tables.COVERAGE):
        told[row["source"]].setdefault(row["family"], {})[row["outcome"]] = row
    failed = defaultdict(list)
    names = ("start", "end", "outcome", "source", "family", "error")
    listed = ", ".join(f"r.{name}" for name in names)
    for row in gold.ask(
        f"SELECT {listed} FROM {{rows}} r WHERE r.outcome NOT IN ('ok', 'skipped') "
        f"ORDER BY {listed}",
        rows=gold.whole(tables.READINGS),
    ):
        failed[row["source"], row["family"]].append(row)
    sources = []
    for one, end_us in with_ends(subjects):
        if one.kind != "source":
            continue
        expected = expected_us(one, end_us, gold.period, now_us)
        nobody_read: dict[str, dict[str, Row]] = {ANY_FAMILY: {}} if expected else {}
        for family, outcomes in (told[one.source] or nobody_read).items():
            ok, gaps = outcomes.get("ok"), failed[one.source, family]
            seen = ok["duration_us"] if ok else 0
            sources.append(
                {
                    "source": one.source,
                    "family": family,
                    **_seen(max(expected, seen), seen),
                    "outcomes": {outcome: row["scrapes"] for outcome, row in outcomes.items()},
                    "interval_us": max((r["interval_us"] for r in outcomes.values()), default=None),
                    "slowest_us": ceil(ok["seconds_max"] * 1e6) if ok else None,
                    "first_error": next((row["error"] for row in gaps if row["error"]), None),
                    "gaps": _joined(gaps),
                }
            )
    expected, seen = (sum(row[name] for row in sources) for name in ("expected_us", "observed_us"))
    return {**_seen(expected, seen), "sources": sources}


def _seen(expected: int, seen: int) -> Row:
    return {
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
    }


def _joined(gaps: list[Row]) -> list[Row]:
    """Failures side by side as one gap."""
    return [
        {
            "start": iso(pieces[0]["start"]),
            "end": iso(max(piece["end"] for piece in pieces)),
            "outcome": outcome,
            "error": pieces[0]["error"],
        }
        for outcome, alike in groupby(gaps, key=itemgetter("outcome"))
        for pieces in touching(alike, itemgetter("start", "end"))
    ]


class Unseen(NamedTuple):
    """Of one topic; microseconds, None: nothing is promised of it, so nobody reckoned.

    Attributes:
        expected_us: Time in which it existed.
        us: Time in which not all its partitions were seen.
        counted: How long it was wholly seen, by how many partitions it had then.
    """

    expected_us: int | None = None
    us: int | None = None
    counted: Mapping[int, int] = MappingProxyType({})

    def alone(self, found: Mapping[str, Any]) -> int | None:
        """What is unknown of one partition, at most.

        Gold has rows of it only where it was not zero; the rest, the topic knows.

        Args:
            found: What gold has of it; it was seen while it was bad.
        """
        if self.expected_us is None or self.us is None:
            return None
        return min(self.us, max(0, self.expected_us - (found.get("positive_us") or 0)))

    def together(self, partitions: int | None, found: Mapping[str, Any]) -> int | None:
        """What is unknown of all partitions, summed over them, at most.

        Args:
            partitions: How many there are, as told last.
            found: What gold has of the topic.
        """
        if self.expected_us is None or partitions is None:
            return None
        series = found.get("series")
        expected = parts.expected_us(self.expected_us, self.counted, series, partitions)
        return max(0, (expected or 0) - (found.get("observed_us") or 0))


def unseen(gold: Gold, stated: Sequence[Statement]) -> Mapping[str, Unseen]:
    """By topic; of a topic that is not there, nobody knows."""
    found: defaultdict[str, Unseen] = defaultdict(Unseen)
    asked = [one for one in stated if one.objective.metric == UNAVAILABLE]
    seen = _wholly_seen(gold, {one.objective.name for one in asked}) if asked else {}
    for one in asked:
        topic, whole = str(one.subject.topic), one.whole_us
        counted = seen.get(topic, {})
        found[topic] = Unseen(whole, max(0, whole - sum(counted.values())), counted)
    return found


def _wholly_seen(gold: Gold, objectives: Collection[str]) -> dict[str, dict[int, int]]:
    """How long topics were wholly seen, by how many partitions they had then.

    Of several objectives it is by the one that tells of most.
    """
    sli = gold.engine.query(
        f"SELECT r.* FROM {{rows}} r WHERE {is_one_of('r.objective', sorted(objectives))}",
        rows=gold.whole(tables.SLI),
    )
    told: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    rows = parts.by_count(gold.rows, sli, gold.whole(tables.TOPICS), ())
    for _, objective, topic, count, us in rows:
        if topic is not None:
            told[objective, topic][count] = us
    found: dict[str, dict[int, int]] = {}
    for (_, topic), counted in sorted(told.items()):
        if sum(counted.values()) > sum(found.get(topic, {}).values()):
            found[topic] = counted
    return found
