"""The reference of metrics, from the catalogue that agents read by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.catalogue import load
from docs.tools.layout import code, page, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Family, Metric
    from collector.catalogue.entries import KnownWrong

_INTRODUCTION: Final = """\
All that agents read, by families: a family is read together, from one kind of source, at one
cadence. `jmxlake-agent beans` prints the same for the version that is installed and for the files
that you have added; `jmxlake-agent check` says of each whether it is there, and why not.

*Unit* is UCUM's, as OpenTelemetry has it. A *gauge* holds a value for a time; of a *counter* the
increase in each window is kept. Where no Kafka version stands, none is known that lacks it. A
*trap* is what a reader of the bare bean would fall into; what a version is known to report wrongly
is read all the same, and marked (`known_wrong`).

One metric more is made in the lakehouse: `kafka.partition.unavailable` is 1 while a partition is
under its min ISR or has no leader."""

_VIA: Final = {
    "jmx": "JMX",
    "admin": "Kafka's Admin API",
    "metadata_log": "the broker's metadata log",
    "statistics": "a client's file of statistics",
}
_ABSENT: Final = {
    "idle": "No bean means idle: there was no such traffic.",
    "zero": "No bean means zero.",
}
_NEEDS: Final = {
    "quota": "Needs a quota of its kind.",
    "tiering": "Needs tiered storage.",
    "plugin": "Needs a remote storage plugin that has such beans.",
    "draft": "A draft that no Kafka release has; some brokers that were patched early do.",
}

_REPORTED_BY: Final = {
    "replicas": "Followers report it too.",
    "controllers": "Controllers report it too.",
}


def text() -> str:
    """The page."""
    families = load().families
    return page("Metrics", _INTRODUCTION, *(_family(family) for family in families))


def _family(family: Family) -> str:
    roles = " and ".join(f"{role}s" for role in family.roles)
    state = "" if family.enabled else " Off unless the configuration asks for it."
    head = (
        f"Of {roles}, from {_VIA[family.via]}, every {family.cadence_seconds} s by default; at most"
        f" {family.cap:,} series a scrape.{state}"
    )
    return "\n\n".join([f"## {family.name}", head, *(_metric(one) for one in family.metrics)])


def _metric(metric: Metric) -> str:
    facts = [f"unit {code(metric.unit)}", metric.kind, _versions(metric), metric.kip or ""]
    lines = [", ".join(filter(None, facts)), _place(metric), prose(metric.description)]
    lines += [f"*Trap*: {trap}" for trap in traps(metric)]
    lines += [_ABSENT.get(metric.absent, ""), _NEEDS.get(metric.needs or "", "")]
    lines += _traits(metric)
    shown = "\n".join(f"- {line}" for line in lines if line)
    return f"### {metric.name}\n\n{shown}"


def _traits(metric: Metric) -> Iterator[str]:
    """Yield how the rollup reads values that are not plain figures."""
    if metric.describes:
        yield f"An attribute of a {metric.describes} (`gold/subjects`), without figures in gold."
    if metric.position:
        yield "A place in a log, without figures in gold."
    if metric.bound:
        yield f"The {metric.bound.side} bound of {code(metric.bound.of)}."
    if metric.reported_by:
        yield _REPORTED_BY[metric.reported_by]


def _versions(metric: Metric) -> str:
    if metric.first and metric.last:
        return f"Kafka {metric.first} to {metric.last}"
    if metric.last:
        return f"up to Kafka {metric.last}"
    return f"Kafka {metric.first} and later" if metric.first else ""


def _place(metric: Metric) -> str:
    if metric.object is None:
        return f"from {code(metric.call or '')}"
    beans = " or ".join(map(code, metric.patterns))
    return f"bean {beans}, attribute {code(metric.attribute_text)}"


def traps(metric: Metric) -> Iterator[str]:
    """What a reader of the bare value would fall into."""
    for known in metric.known_wrong:
        yield f"{_span(known)} {prose(known.reason)}."
    if metric.memory_seconds:
        yield f"goes on showing a value for about {metric.memory_seconds} s after its cause ended."
    if metric.refresh_seconds:
        yield f"is written every {metric.refresh_seconds} s: what changed shows up to that late."
    if metric.led:
        yield "followers say zero whatever is true: only the leader's bean counts."
    if metric.url_encoded:
        names = ", ".join(map(code, metric.url_encoded))
        yield f"Kafka URL-encodes {names} in the bean's name; here it is decoded."
    if metric.replaces:
        replaced = code(metric.replaces)
        yield f"where it is read it is called {replaced}, and what had that name is renamed."


def _span(known: KnownWrong) -> str:
    before = f", before {known.before}" if known.before else ""
    return f"from Kafka {known.since} on{before}:"
