"""Reference of metrics, generated from the metric catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.catalogue import load
from docs.tools.layout import code, page, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.catalogue import Family, Metric
    from collector.catalogue.entries import KnownWrong

_INTRODUCTION: Final = """\
This page lists all metrics that agents scrape, by family. The metrics of a family are scraped
together, from one kind of source, at one scrape interval. `jmxlake-agent metrics` prints the same
list for the installed version, with your own files. `jmxlake-agent check` reports for each metric
whether the broker has it, or the reason.

*Unit* is a UCUM unit, as in OpenTelemetry. A *gauge* holds a value for a time; for a *counter* the
increase per window is stored. If no Kafka version is given, all known versions have the metric. A
*trap* is a misleading property of the raw MBean. Values that a version is known to report wrongly
are scraped and marked (`known_wrong`).

The rollup adds one metric: `kafka.partition.unavailable` is 1 while a partition is under its min
ISR or has no leader."""

_VIA: Final = {
    "jmx": "JMX",
    "admin": "Kafka's Admin API",
    "metadata_log": "the broker's metadata log",
    "remote_log": "the metadata topic of remote storage, and the broker's log folders",
    "statistics": "a client's statistics file",
}
_ABSENT: Final = {
    "idle": "A missing MBean means idle: there was no such traffic.",
    "zero": "A missing MBean means zero.",
}
_NEEDS: Final = {
    "quota": "Needs a quota of its kind.",
    "tiering": "Needs tiered storage.",
    "plugin": "Needs a remote storage plugin with these MBeans.",
    "draft": "Draft without a Kafka release; some patched brokers have it.",
}

_REPORTED_BY: Final = {
    "replicas": "Followers report it too.",
    "controllers": "Controllers report it too.",
}


def text() -> str:
    """Return the page."""
    families = load().families
    return page("Metrics", _INTRODUCTION, *(_family(family) for family in families))


def _family(family: Family) -> str:
    roles = " and ".join(f"{role}s" for role in family.roles)
    state = "" if family.enabled else " Disabled by default."
    head = (
        f"Source: {roles}, through {_VIA[family.via]}, every {family.cadence_seconds} s by default;"
        f" at most {family.cap:,} series per scrape.{state}"
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
    return f"MBean {beans}, attribute {code(metric.attribute_text)}"


def traps(metric: Metric) -> Iterator[str]:
    """Yield the misleading properties of the raw value."""
    for known in metric.known_wrong:
        yield f"{_span(known)} {prose(known.reason)}."
    if metric.memory_seconds:
        yield f"keeps a value for about {metric.memory_seconds} s after its cause ended."
    if metric.refresh_seconds:
        yield f"is updated every {metric.refresh_seconds} s; a change can appear that late."
    if metric.led:
        yield "followers always report zero; the agent uses only the leader's MBean."
    if metric.url_encoded:
        names = ", ".join(map(code, metric.url_encoded))
        yield f"Kafka URL-encodes {names} in the MBean's name; the agent decodes it."
    if metric.replaces:
        replaced = code(metric.replaces)
        yield f"if scraped, it has the name {replaced}, and the metric of that name is renamed."


def _span(known: KnownWrong) -> str:
    before = f", before {known.before}" if known.before else ""
    return f"Kafka {known.since} and later{before}:"
