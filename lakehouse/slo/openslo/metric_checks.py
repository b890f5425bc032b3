"""Check of objectives against a catalogue: metrics and labels that can never have data."""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from lakehouse.core.metrics import UNAVAILABLE, Known, known
from lakehouse.core.objective import NAMES, Objective
from lakehouse.core.yaml_nodes import Node
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import labels_in
from lakehouse.engines.relation import is_one_of
from lakehouse.errors import TableNotFoundError
from lakehouse.rollup.lake_catalogues import meanings
from lakehouse.slo.openslo.objective_files import FileObject
from lakehouse.tables import LABELLED, METRIC_DEFINITIONS


def of_lake(engine: Engine, objects: Iterable[FileObject]) -> dict[str, Known]:
    """Return the metrics in the catalogues of a lake's agents, and derived metrics.

    Args:
        engine: Reads the lake.
        objects: Objects of files. If their objectives choose by labels, the metrics have labels.

    Raises:
        TableNotFoundError: The lake has no catalogue of an agent.
    """
    sql, shipped = "SELECT DISTINCT r.metric, r.kind, r.family FROM {rows} r", known()
    metrics = {name: one for name, one in shipped.items() if not one.families}
    chosen = [one for item in objects for one in item.objectives if one.series]
    labels = _labels(engine, {name for one in chosen for name in one.metrics}) if chosen else {}
    rows = ask(engine, sql, rows=engine.rows(METRIC_DEFINITIONS))
    traits = meanings(engine)
    for metric, kind, family in rows:
        level = shipped[metric].level if metric in shipped else ""
        others = metrics[metric].families if metric in metrics else frozenset()
        metrics[metric] = Known(
            kind, others | {family}, level, labels.get(metric, ()), traits.traits_of(metric)
        )
    return metrics


def _labels(engine: Engine, metrics: Iterable[str]) -> dict[str, set[str]]:
    """Return the labels of the series of some metrics in gold; empty before a rollup."""
    where = is_one_of("r.metric", sorted(metrics))
    sql = f"SELECT DISTINCT r.metric, r.labels FROM {{rows}} r WHERE {where}"
    try:
        rows = engine.rows(LABELLED)
    except TableNotFoundError:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for metric, labels in ask(engine, sql, rows=rows):
        found[metric] |= labels_in(labels).keys()
    return found


def check(objects: list[FileObject], metrics: Mapping[str, Known], *, where: str) -> None:
    """Add a finding for each objective that can have no data; it has none then.

    Args:
        objects: The objects of files; their findings are added to.
        metrics: The known metrics.
        where: Their place, for the findings.
    """
    for item in objects:
        for objective in item.objectives:
            for name, fault in _faults(objective, metrics, where):
                place = next(_places(item.node, name), item.node)
                if (finding := place.says("unsupported", fault)) not in item.findings:
                    item.findings.append(finding)
        if item.outcome == "unsupported":
            item.objectives = []


def _places(node: Node, name: str) -> Iterator[Node]:
    """Yield the places of a metric or label of this name; none if it is in a referenced object."""
    metric, match = node.get("metric"), node.get("match")
    if metric is not None and metric.text == name:
        yield metric
    if match is not None and name in match.keys:
        yield match.keys[name]
    for inner in (*node.entries.values(), *node.items):
        yield from _places(inner, name)


def _faults(
    objective: Objective, metrics: Mapping[str, Known], where: str
) -> Iterator[tuple[str, str]]:
    """Yield each metric and label of an objective that cannot have data, with the reason."""
    events = objective.events
    levels = ("topic", "partition") if objective.kind == "topic" else (objective.kind,)
    for name in dict.fromkeys(objective.metrics):
        one = metrics.get(name)
        if one is None and objective.level == "group" and not events:
            one = next((two for two in metrics.values() if two.traits.bound_of == name), None)
        if one is None:
            yield name, _unknown(name, metrics, where)
        elif one.level and one.level not in levels:
            yield name, f"it is a metric of level {one.level}, not {objective.level}"
        elif objective.kind in {"topic", "client"} and not one.traits.has_figures:
            yield name, "no figure is made of it: it describes, or is a position"
        elif events and one.kind != "counter":
            yield name, "it is a gauge, and counts no events: write a thresholdMetric"
        elif not events and one.kind == "counter" and objective.level != "group":
            yield name, "it is a counter, not a gauge: write a ratioMetric"
        labels = one.labels if one else objective.series
        for label in sorted(objective.series.keys() - labels):
            yield label, _no_label(label, name, labels, where)


def _no_label(label: str, metric: str, labels: Iterable[str], where: str) -> str:
    near = difflib.get_close_matches(label, [*labels, *NAMES], 1, 0.75)
    others = ", ".join(sorted(labels)) or "none yet: name a --lake, after a rollup"
    meant = f"did you mean {near[0]}?" if near else f"its labels are {others}"
    return f"{where} has no series of {metric} with that label; {meant}"


def _unknown(name: str, metrics: Mapping[str, Known], where: str) -> str:
    shipped = known().get(name)
    if shipped:
        families = " or ".join(sorted(shipped.families))
        return f"{where} does not read it: switch the family {families} on"
    named = dict.fromkeys(one.traits.bound_of or own for own, one in metrics.items())
    near = difflib.get_close_matches(name, [*named, UNAVAILABLE], 1, 0.75)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{where} has no such metric{meant}"
