"""What jmxlake makes of a valid SLO: objectives, and what it cannot do of it, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakehouse.openslo.nodes import Findings, Node, number, truth
from lakehouse.openslo.shapes import GOOD_SECONDS, clock
from lakehouse.openslo.sources import Library, Source, counters, source
from lakehouse.slo_objective import ISO_WEEK, LONGEST_DAYS, Objective, Slices, TimeWindow
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

if TYPE_CHECKING:
    from lakehouse.slo_objective import Events

_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DAYS: Final = {"d": 1, "w": 7, "M": 31, "Q": 92, "Y": 366}


def objectives(slo: Node, library: Library, found: Findings) -> list[Objective]:
    """The objectives of a valid SLO; none where jmxlake cannot do it.

    Args:
        slo: The object.
        library: What it may refer to.
        found: Gets what is not supported, and what has no effect.
    """
    reader = _Reader(slo, library)
    read = reader.objectives()
    found += reader.found
    return read if all(one.kind == "note" for one in reader.found) else []


@dataclass(frozen=True, slots=True)
class _Reader:
    slo: Node
    library: Library
    found: Findings = field(default_factory=Findings)

    @property
    def spec(self) -> Node:
        return self.slo.entries["spec"]

    @property
    def goals(self) -> tuple[Node, ...]:
        return self.spec.entries["objectives"].items

    @property
    def method(self) -> Node:
        return self.spec.entries["budgetingMethod"]

    def objectives(self) -> list[Objective]:
        window = self._window()
        if "alertPolicies" in self.spec.entries:
            told = "nothing here alerts; burn rates are in the statements"
            self.found.note(self.spec.keys["alertPolicies"], told)
        for goal in self.goals:
            for key in goal.present("indicator", "indicatorRef", "compositeWeight"):
                told = "composite SLOs are not computed: write an SLO for each"
                self.found.unsupported(goal.keys[key], told)
        indicator = self._indicator()
        if indicator is None:
            return []
        measured, events = self._measured(indicator)
        are_events = bool(indicator.present("ratioMetric"))
        labelled = self.slo.entries["metadata"].get("labels")
        labels = {
            key: tuple(one.text for one in (value.items if value.tag == "seq" else (value,)))
            for key, value in (labelled.entries if labelled else {}).items()
        }
        read = []
        for place, goal in enumerate(self.goals, 1):
            above = self._above(goal, measured, are_events=are_events)
            target, slices = self._target(goal), self._slices(goal, are_events=are_events)
            if measured is None or window is None:
                continue
            name, title = self._named(place, goal)
            read.append(
                Objective(
                    name, title, self._text("description"), measured.level, measured.metric, above,
                    target, measured.where, slices, events, window,
                    labels,
                    measured.match, self._text("service"),
                )
            )  # fmt: skip
        return read

    def _indicator(self) -> Node | None:
        there = self.spec.present("indicator", "indicatorRef")
        if len(there) != 1:
            told = "it has both" if there else "neither is there"
            message = f"exactly one of indicator and indicatorRef is needed; {told}"
            if not any(goal.present("indicator", "indicatorRef") for goal in self.goals):
                self.found.invalid(self.spec, message)
            return None
        one = self.spec.entries[there[0]]
        if there == ["indicatorRef"]:
            sli = self.library.indicators.get(one.text)
            if sli is None:
                self.found.unsupported(one, f"no valid SLI {one.text!r} is among these files")
                return None
            one = sli
        return one.entries["spec"]

    def _measured(self, indicator: Node) -> tuple[Source | None, Events | None]:
        """Whose values are measured, or which events are counted."""
        method = self.method.text
        if indicator.present("ratioMetric"):
            if method == GOOD_SECONDS:
                told = "events have no seconds: write Occurrences, Timeslices or RatioTimeslices"
                self.found.unsupported(self.method, told)
            return counters(indicator.entries["ratioMetric"], self.library, self.found)
        if method == "Occurrences":
            told = "there is nothing to count: a thresholdMetric is a value that holds over time"
            use = "write Timeslices, RatioTimeslices or GoodSeconds, or a ratioMetric of counters"
            self.found.unsupported(self.method, f"{told}; {use}")
        if len(self.goals) > 1:
            told = "with a thresholdMetric there can be one objective only"
            self.found.invalid(self.goals[1], told)
        measured = source(indicator.entries["thresholdMetric"], self.library, self.found)
        if measured and measured.level == "partition" and method != GOOD_SECONDS:
            told = f"a single partition's time is not cut into slices: write {GOOD_SECONDS}"
            self.found.unsupported(self.method, told)
        return measured, None

    def _above(self, goal: Node, measured: Source | None, *, are_events: bool) -> float:
        if are_events:
            for key in goal.present("op", "value"):
                self.found.note(goal.keys[key], "it has a meaning with a thresholdMetric only")
            return 0.0
        op, value = goal.get("op"), goal.get("value")
        if op is None or value is None:
            missing = " and ".join(key for key in ("op", "value") if not goal.get(key))
            self.found.invalid(goal, f"{missing} missing: a thresholdMetric needs both")
            return 0.0
        if op.text != "lte":
            told = "only lte: a metric of jmxlake is good up to a value, and bad above it"
            self.found.unsupported(op, told)
        above = number(value) or 0.0
        if above < 0:
            self.found.unsupported(value, "it must be 0 or more: idle is 0, and must be good")
        elif above and measured and not measured.has_threshold:
            told = "it must be 0: only a topic's own metrics have another threshold"
            self.found.unsupported(value, told)
        return above

    def _target(self, goal: Node) -> float:
        key = goal.present("target", "targetPercent")[0]
        target = (number(goal.entries[key]) or 0.0) / (100.0 if key == "targetPercent" else 1.0)
        if target <= 0:
            told = "0 is met whatever happens: it must be above 0"
            self.found.unsupported(goal.entries[key], told)
        return round(target, 12)

    def _named(self, place: int, goal: Node) -> tuple[str, str]:
        metadata = self.slo.entries["metadata"].entries
        name, title = metadata["name"].text, metadata.get("displayName", metadata["name"]).text
        if len(self.goals) == 1:
            return name, title
        own = goal.entries.get("displayName")
        return f"{name}.{place}", f"{title}: {own.text if own else place}"

    def _text(self, key: str) -> str:
        node = self.spec.get(key)
        return node.text if node else ""

    # Lengths of time: the window, and the slices that it is cut into.

    def _window(self) -> TimeWindow | None:
        """The window; None where jmxlake has no such window."""
        several = self.spec.get("timeWindow")
        if several is None:
            self.found.note(self.spec, "no timeWindow: ISO weeks, UTC")
            return ISO_WEEK
        (window,) = several.items
        calendar, told = window.get("calendar"), window.entries.get("isRolling")
        is_rolling = truth(told) if told else calendar is None
        if is_rolling and calendar:
            self.found.invalid(window, "a rolling window has no calendar")
            return None
        if not is_rolling and not calendar:
            self.found.invalid(window, "calendar is missing: the window is not rolling")
            return None
        duration = window.entries["duration"]
        count, unit = _parts(duration)
        wrong = None
        if unit not in _DAYS:
            meant = "it is minutes, and M is months" if unit == "m" else "it is hours"
            wrong = f"{meant}: no window is shorter than 1d"
        elif count * _DAYS[unit] > LONGEST_DAYS:
            wrong = "no window is longer than a year"
        elif calendar is None and unit not in {"d", "w"}:
            wrong = f"a rolling {duration.text} has no fixed length: write days, such as 30d"
        if wrong:
            self.found.unsupported(duration, wrong)
            return None
        if calendar is None:
            return TimeWindow(count * _DAYS[unit], "d", None)
        start, zone = calendar.entries["startTime"], calendar.entries["timeZone"]
        return TimeWindow(count, unit, clock(start), zone.text)

    def _slices(self, goal: Node, *, are_events: bool) -> Slices | None:
        """The slices of an objective; None where there are none, or jmxlake has none such."""
        method = self.method.text
        window, target = goal.get("timeSliceWindow"), goal.get("timeSliceTarget")
        if method in {"Occurrences", GOOD_SECONDS}:
            for key in goal.present("timeSliceTarget", "timeSliceWindow"):
                self.found.note(goal.keys[key], f"{method} has no slices")
            if method == GOOD_SECONDS:
                told = "GoodSeconds is an extension of jmxlake; other tools do not know it"
                self.found.note(self.method, told)
            return None
        needed = ("timeSliceWindow", "timeSliceTarget")[: 2 if method == "Timeslices" else 1]
        for key in needed:
            if not goal.get(key):
                self.found.invalid(goal, f"{key} is missing: {method} needs it")
        if window is None or not goal.get(needed[-1]):
            return None
        seconds = self._slice_seconds(window, are_events=are_events)
        if seconds is None:
            return None
        if method == "Timeslices":
            return Slices(seconds * 1_000_000, number(target) if target else None)
        if target:
            told = f"{method} averages slices and judges none"
            self.found.note(goal.keys["timeSliceTarget"], told)
        return Slices(seconds * 1_000_000)

    def _slice_seconds(self, window: Node, *, are_events: bool) -> int | None:
        is_number = window.tag == "int"
        count, unit = (int(number(window) or 0), "m") if is_number else _parts(window)
        seconds, of_gold = count * _SECONDS.get(unit, 0), DEFAULT_WINDOW_SECONDS
        if not 0 < seconds <= _SECONDS["d"]:
            self.found.unsupported(window, "a slice is between 1m and 1d")
        elif seconds >= of_gold or of_gold % seconds:
            if seconds % of_gold:
                why = "it neither divides 5m nor is a multiple of it: the lake needs another window"
                self.found.note(window, why)
            return seconds
        elif are_events:
            told = "events are counted in windows of 5m: write a multiple of it"
            self.found.unsupported(window, told)
        else:
            told = (
                "it is shorter than gold's windows of 5m: how many slices were bad has wider bounds"
            )
            self.found.note(window, told)
            return seconds
        return None


def _parts(duration: Node) -> tuple[int, str]:
    """The number and the unit of a text that was checked to be a duration."""
    return min(int(duration.text[:-1]), 10**6), duration.text[-1]
