"""The facts of each section of the details, and what its lines and rows may state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from lakehouse.core import display
from lakehouse.report.figures import name as shown_name
from tests import report_figures

if TYPE_CHECKING:
    from tests.report_statements import Statement

Row = dict[str, Any]

_SECTIONS: Final = {
    "availability": ("min_isr", "service"),
    "loss": ("lost_before_read",),
    "lag": ("consumer_lag",),
    "throttling": ("throttling",),
    "tiered": ("tier_lag", "remote_reads", "tiering"),
    "requests": ("service",),
    "replication": ("replication",),
    "risks": ("hygiene",),
    "disk": ("capacity",),
    "owners": ("owners",),
    "own-metrics": ("own_metrics",),
    "coverage": ("coverage", "rejected", "changes"),
    "incidents": ("incidents", "incidents_omitted", "events"),
}
_LABELS: Final = ("team", "owner", "tier")
_PERCENT: Final = 100
_GIBI: Final = 2**30
_MONTH: Final = 30 * 86_400
"""Seconds; storage is counted in months."""
_OTHERS: Final = re.compile(r"The other (\d[\d,]*)")
_PATH: Final = "in "
"""Key of the place of a row within its section; no record has it."""


class Sections:
    """The rows of every section, by the names in them."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._rows: dict[str, list[Row]] = {}
        self._by_name: dict[str, defaultdict[str, list[int]]] = {}
        self._totals: dict[str, list[float]] = {}
        self._subjects: defaultdict[str, list[Row]] = defaultdict(list)
        for objective in facts["objectives"]:
            for one in objective["subjects"]:
                for text in _texts(one):
                    self._subjects[text].append({"used": one.get("used"), **_named(one)})

    def line(self, one: Statement) -> list[str]:
        """Return the figures of a line that no row, count or sum of its section has."""
        rows = self._of(one.key)
        places = self._by_name[one.key]
        names = [text for text in places if text in one.text]
        named = [rows[place] for text in names for place in places[text]]
        counts = self._numbers(one.key)
        facts = [counts, [_numbers(row) for row in named[:50]], self._answers()]
        text = one.text
        if others := _OTHERS.search(text):
            text = text.replace(others[0], "")
            if not self._are_others(int(others[1].replace(",", "")), counts):
                return [others[0]]
        return report_figures.wrong(text, facts, names)

    def _are_others(self, others: int, counts: list[float]) -> bool:
        """Return whether all subjects but those that are shown are this many."""
        known = [one["subjects_known"] for one in self._facts["answers"]] + counts
        return any(each is not None and each - others in counts for each in known)

    def cell(self, one: Statement) -> list[str]:
        """Return the figures of a cell that no row of its section with these names has."""
        rows = self._matching(one)
        if not rows:
            return [f"no row of {one.key} has {one.names[:2]}"]
        used = self._used(one) if one.field == "Budget used" else []
        if one.key == "owners" and one.field in _BUDGETS:
            return report_figures.wrong(one.text, _BUDGETS[one.field](self._facts, rows[0]))
        facts = [[_numbers(row) for row in rows], _sums(rows), used]
        if one.key == "lag":
            facts.append([rough(values) for row in rows for values in _numbers(row)[:1]])
        if one.key == "owners":
            months = [value / _MONTH for value in _sums(rows)]
            facts += [months, [value / _GIBI for value in months]]
        names = [text for row in rows for text in _texts(row)]
        return report_figures.wrong(one.text, facts, names)

    def _used(self, one: Statement) -> list[Any]:
        found = [row for text in one.names for row in self._subjects.get(text, ())]
        return [row["used"] for row in found]

    def _matching(self, one: Statement) -> list[Row]:
        """Return the rows that have the most of some names."""
        rows = self._of(one.key)
        places = self._by_name[one.key]
        votes: defaultdict[int, int] = defaultdict(int)
        # A source's row is the sum of its families, of which not all have the same error.
        for text in {*one.names[: 1 if one.key == "coverage" else None]}:
            for place in places.get(text, ()):
                votes[place] += 1
        most = max(votes.values(), default=0)
        return [rows[place] for place, count in votes.items() if count == most]

    def _of(self, anchor: str) -> list[Row]:
        if anchor not in self._rows:
            rows = [
                row
                for key in _SECTIONS.get(anchor, ())
                for row in _rows(self._facts.get(key), {}, key)
            ]
            by_name: defaultdict[str, list[int]] = defaultdict(list)
            for place, row in enumerate(rows):
                for text in _texts(row):
                    by_name[text].append(place)
            self._rows[anchor], self._by_name[anchor] = rows, by_name
        return self._rows[anchor]

    def _numbers(self, anchor: str) -> list[float]:
        """Return the counts, sums and extremes of a section, and its figures beside its rows."""
        if anchor not in self._totals:
            found: list[float] = []
            for key in _SECTIONS.get(anchor, ()):
                section = self._facts.get(key)
                found += _aggregates(section)
                if key == "incidents":  # a loss has two, for its bounds
                    found.append(sum(not row["metric"].endswith(".low") for row in section or ()))
            self._totals[anchor] = found
        return self._totals[anchor]

    def _answers(self) -> list[Any]:
        return [
            [one["observed_percent"], one["subjects_known"], one["subjects_unknown"]]
            for one in self._facts["answers"]
        ]


def _highest_used(facts: Mapping[str, Any], account: Row) -> list[float]:
    """Return the highest share of an error budget that a subject of an owner used, in percent."""
    labels = {key: account.get(key) for key in _LABELS}.items()
    subjects = [one for row in facts["objectives"] for one in row["subjects"]]
    shares = [one["used"] for one in subjects if labels <= one.items() and one["used"] is not None]
    return [_PERCENT * max(shares)] if shares else []


def _total_used(facts: Mapping[str, Any], account: Row) -> list[float]:
    """Return the share of all error budgets of a team together, in percent."""
    # In a report of one team, the composites are of that team and do not name it.
    team = None if account["team"] == facts.get("team") else account["team"]
    pooled = [one for one in facts["composites"] if one["team"] == team]
    return [_PERCENT * (1 - one["attainment"]) / (1 - one["target"])
            for one in pooled if one["attainment"] is not None and not one["tier"]]  # fmt: skip


_BUDGETS: Final = {"Highest budget used": _highest_used, "Total budget used": _total_used}
"""Shares of error budgets in the table of owners."""


def rough(values: list[float]) -> list[float]:
    """Return records and what they can be at least and at most: buckets are a fourth power of 2.

    Each is also rounded outward to three digits.
    """
    found = [*values, *(value * factor for value in values for factor in (2**-0.25, 2**0.25))]
    units = [(value, 10 ** max(0, len(str(int(abs(value)))) - 3)) for value in found]
    return [*found, *(step(value / unit) * unit for value, unit in units for step in (floor, ceil))]


def _rows(section: Any, above: Row, path: str) -> Iterator[Row]:
    """Yield every row of a section; a row within a row has the names of that, too."""
    if isinstance(section, Mapping):
        inner = {key: value for key, value in section.items() if isinstance(value, list | dict)}
        own = {key: value for key, value in section.items() if key not in inner}
        own |= {
            f"{key} {place}": text
            for key, value in inner.items()
            for place, text in enumerate(value)
            if isinstance(value, list) and isinstance(text, str)
        }
        dicts = {f"{key}_": value for key, value in inner.items() if isinstance(value, dict)}
        if own:
            yield {**above, **own, **dicts, _PATH: path}
        names = {**above, **_named(own)}
        for key, value in inner.items():
            yield from _rows(value, names, f"{path}.{key}")
    elif isinstance(section, list):
        for one in section:
            yield from _rows(one, above, path)


def _named(row: Mapping[str, Any]) -> Row:
    return {key: value for key, value in row.items() if isinstance(value, str)}


def _texts(row: Mapping[str, Any]) -> set[str]:
    """Return the names of a row as a page shows them."""
    texts = [value for key, value in row.items() if isinstance(value, str) and key != _PATH]
    found = {*texts, *(shown_name(value).text for value in texts)}
    if row.get("topic") is not None and row.get("partition") is not None:
        found.add(shown_name(f"{row['topic']}-{row['partition']}").text)
    if row.get("user") is not None and row.get("client_id") is not None:
        found.add(" / ".join(shown_name(row[key]).text for key in ("user", "client_id")))
    if row.get("start"):
        found.add(display.day_and_time(row["start"]).replace("\u00a0", " "))
    if "not_known" in row or "not_known_" in row:
        found.add("no owner" if row.get("team") is None else row["team"])
    if row.get("team"):
        kept = [row[key] for key in ("team", "owner", "tier") if row.get(key)]
        found.add(" / ".join(shown_name(one).text for one in kept))
    return {" ".join(text.replace("\u00a0", " ").split()) for text in found}


def _numbers(row: Row) -> list[Any]:
    """Return the figures of a row, and how far bounds are from them."""
    found: list[float] = [
        value for value in row.values()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]  # fmt: skip
    for key, value in row.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        stem = key.removesuffix("_us")
        unit = key[len(stem) :]
        for bound in ("low", "high"):
            other = row.get(f"{stem}_{bound}{unit}")
            if other is not None:
                found.append(abs(other - value))
    if row.get("start") and row.get("end"):
        length = _micros(row["end"]) - _micros(row["start"])
        lead, tail = row.get("lead_us") or 0, row.get("tail_us") or 0
        found += [length, length - tail, length + lead, lead, tail]
    return [found, [value for key, value in row.items() if key.endswith("_")]]


def _micros(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp() * 1e6


def _sums(rows: list[Row]) -> list[float]:
    """Return the sum of each figure of a list, and the observed share of the expected time."""
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[row[_PATH], key] += value
            if isinstance(value, dict) and key == "outcomes_":
                for name, count in value.items():
                    sums[row[_PATH], name] += count
    shares = [
        _PERCENT * sums[path, "observed_us"] / expected
        for (path, key), expected in [*sums.items()]
        if key == "expected_us" and expected
    ]
    return [*sums.values(), *shares]


def _aggregates(section: Any) -> list[float]:
    """Return counts, sums and extremes of the lists of a section, and its own figures."""
    found: list[float] = []
    if isinstance(section, bool):
        return found
    if isinstance(section, int | float):
        return [section]
    if isinstance(section, Mapping):
        for value in section.values():
            found += _aggregates(value)
    elif isinstance(section, list):
        rows = [one for one in section if isinstance(one, Mapping)]
        found += _of_list(rows) if rows else [len(section)]
    return found


def _of_list(rows: list[Any]) -> list[float]:
    found: list[float] = [len(rows)]
    for key in {key for row in rows for key in row}:
        values = [row.get(key) for row in rows]
        numbers = [
            one for one in values if isinstance(one, int | float) and not isinstance(one, bool)
        ]
        texts = [one for one in values if isinstance(one, str)]
        bad = [row for row, one in zip(rows, values, strict=True)
               if isinstance(one, int | float) and one > 0]  # fmt: skip
        found += [len({*texts}), len(bad), len(values) - len(numbers), len(rows) - len(texts)]
        for name in ("topic", "group", "source", "client_id", "team"):
            found.append(len({row.get(name) for row in bad}))
        if numbers:
            found += [sum(numbers), max(numbers), min(numbers)]
        for text, count in _counts(texts).items():
            found.append(count)
            own = [row for row in rows if row.get(key) == text]
            if len(_counts(texts)) <= 8:
                found += [len({row.get(name) for row in own}) for name in ("topic", "group")]
    return found


def _counts(texts: list[str]) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for text in texts:
        found[text] += 1
    return found if len(found) <= 50 else {}
