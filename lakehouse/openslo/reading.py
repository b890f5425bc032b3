"""What jmxlake makes of a valid SLO: objectives, and what it cannot do of it, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.openslo.checks import present
from lakehouse.openslo.findings import Finding
from lakehouse.openslo.nodes import Node, number, plain
from lakehouse.openslo.shapes import GOOD_SECONDS
from lakehouse.openslo.sources import Library, Source, counters, source
from lakehouse.openslo.spans import slices, time_window
from lakehouse.slo_objective import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.slo_objective import Events, Slices


def objectives(slo: Node, library: Library, found: list[Finding]) -> list[Objective]:
    """The objectives of a valid SLO; none where jmxlake cannot do it.

    Args:
        slo: The object.
        library: What it may refer to.
        found: Gets what is not supported, and what has no effect.
    """
    own: list[Finding] = []
    read = _Reader(slo, library, own).objectives()
    found += own
    return read if all(one.kind == "note" for one in own) else []


@dataclass(frozen=True, slots=True)
class _Reader:
    slo: Node
    library: Library
    found: list[Finding]

    @property
    def root(self) -> Node:
        return self.slo.entries["spec"]

    @property
    def spec(self) -> Mapping[str, Node]:
        return self.root.entries

    @property
    def goals(self) -> tuple[Node, ...]:
        return self.spec["objectives"].items

    @property
    def method(self) -> Node:
        return self.spec["budgetingMethod"]

    def objectives(self) -> list[Objective]:
        window = time_window(self.root, self.found)
        if "alertPolicies" in self.spec:
            told = "nothing here alerts; burn rates are in the statements"
            self.found.append(self.root.keys["alertPolicies"].says("note", told))
        self._refuse_composites()
        indicator = self._indicator()
        if indicator is None:
            return []
        source_, events = self._measured(indicator)
        are_events = bool(present(indicator, "ratioMetric"))
        read = []
        for place, goal in enumerate(self.goals, 1):
            above = self._above(goal, source_, are_events=are_events)
            target, cut = self._target(goal), self._slices(goal, are_events=are_events)
            if source_ is None or window is None:
                continue
            name, title = self._named(place, goal)
            read.append(
                Objective(
                    name, title, self._text("description"), source_.level, source_.metric, above,
                    target, source_.where, cut, events, window,
                    _labels(self.slo.entries["metadata"].entries.get("labels")),
                    source_.match, self._text("service"),
                )
            )  # fmt: skip
        return read

    def _refuse_composites(self) -> None:
        for goal in self.goals:
            for key in present(goal, "indicator", "indicatorRef", "compositeWeight"):
                told = "composite SLOs are not computed: write an SLO for each"
                self.found.append(goal.keys[key].says("unsupported", told))

    def _indicator(self) -> Node | None:
        there = present(self.root, "indicator", "indicatorRef")
        if len(there) != 1:
            told = "it has both" if there else "neither is there"
            message = f"exactly one of indicator and indicatorRef is needed; {told}"
            if not any(present(goal, "indicator", "indicatorRef") for goal in self.goals):
                self.found.append(self.root.says("invalid", message))
            return None
        if there == ["indicator"]:
            return self.spec["indicator"].entries["spec"]
        ref = self.spec["indicatorRef"]
        sli = self.library.indicators.get(ref.text)
        if sli is None:
            told = f"no valid SLI {ref.text!r} is among these files"
            self.found.append(ref.says("unsupported", told))
            return None
        return sli.entries["spec"]

    def _measured(self, indicator: Node) -> tuple[Source | None, Events | None]:
        """Whose values are measured, or which events are counted."""
        if present(indicator, "ratioMetric"):
            if self.method.text == GOOD_SECONDS:
                told = "events have no seconds: write Occurrences, Timeslices or RatioTimeslices"
                self.found.append(self.method.says("unsupported", told))
            return counters(indicator.entries["ratioMetric"], self.library, self.found)
        if self.method.text == "Occurrences":
            told = "there is nothing to count: a thresholdMetric is a value that holds over time"
            use = "write Timeslices, RatioTimeslices or GoodSeconds, or a ratioMetric of counters"
            self.found.append(self.method.says("unsupported", f"{told}; {use}"))
        if len(self.goals) > 1:
            told = "with a thresholdMetric there can be one objective only"
            self.found.append(self.goals[1].says("invalid", told))
        source_ = source(indicator.entries["thresholdMetric"], self.library, self.found)
        if source_ and source_.level == "partition" and self.method.text != GOOD_SECONDS:
            told = f"a single partition's time is not cut into slices: write {GOOD_SECONDS}"
            self.found.append(self.method.says("unsupported", told))
        return source_, None

    def _above(self, goal: Node, source_: Source | None, *, are_events: bool) -> float:
        if are_events:
            for key in present(goal, "op", "value"):
                told = "it has a meaning with a thresholdMetric only"
                self.found.append(goal.keys[key].says("note", told))
            return 0.0
        missing = [key for key in ("op", "value") if not present(goal, key)]
        if missing:
            told = f"{' and '.join(missing)} missing: a thresholdMetric needs both"
            self.found.append(goal.says("invalid", told))
            return 0.0
        op, value = goal.entries["op"], goal.entries["value"]
        if op.text != "lte":
            told = "only lte: a metric of jmxlake is good up to a value, and bad above it"
            self.found.append(op.says("unsupported", told))
        above = number(value) or 0.0
        if above < 0:
            told = "it must be 0 or more: idle is 0, and must be good"
            self.found.append(value.says("unsupported", told))
        elif above and source_ and not source_.has_threshold:
            told = "it must be 0: only a topic's own metrics have another threshold"
            self.found.append(value.says("unsupported", told))
        return above

    def _target(self, goal: Node) -> float:
        key = present(goal, "target", "targetPercent")[0]
        node = goal.entries[key]
        target = (number(node) or 0.0) / (100.0 if key == "targetPercent" else 1.0)
        if target <= 0:
            told = "0 is met whatever happens: it must be above 0"
            self.found.append(node.says("unsupported", told))
        return round(target, 12)

    def _slices(self, goal: Node, *, are_events: bool) -> Slices | None:
        method = self.method.text
        if method not in {"Occurrences", GOOD_SECONDS}:
            return slices(goal, method, self.found, are_events=are_events)
        for key in present(goal, "timeSliceTarget", "timeSliceWindow"):
            self.found.append(goal.keys[key].says("note", f"{method} has no slices"))
        if method == GOOD_SECONDS:
            told = "GoodSeconds is an extension of jmxlake; other tools do not know it"
            self.found.append(self.method.says("note", told))
        return None

    def _named(self, place: int, goal: Node) -> tuple[str, str]:
        metadata = self.slo.entries["metadata"].entries
        name, title = metadata["name"].text, metadata.get("displayName", metadata["name"]).text
        if len(self.goals) == 1:
            return name, title
        own = goal.entries.get("displayName")
        return f"{name}.{place}", f"{title}: {own.text if own else place}"

    def _text(self, key: str) -> str:
        node = self.spec.get(key)
        return "" if node is None or node.is_null else node.text


def _labels(node: Node | None) -> dict[str, tuple[str, ...]]:
    if node is None or node.is_null:
        return {}
    return {
        key: tuple(str(one) for one in (value if isinstance(value, list) else [value]))
        for key, value in plain(node).items()
    }
