"""Why a bean is not there: told from what the catalogue knows of it and the broker of itself.

Absent is not zero, and mostly not wrong either: many beans come with their first use. What has no
such excuse is missing, and a person must look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from collector.catalogue.entries import version_key
from collector.sources.admin_readings import FENCED, QUOTAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.catalogue import Metric
    from collector.samples import Scrape

State = Literal["found", "wrong", "absent", "missing"]

_TIERING_BEAN: Final = "kafka.broker.remote_log_manager.tasks_idle"
_LED_BEAN: Final = "kafka.broker.led_partitions"
_LIMITS: Final = {metric.split(".")[2]: metric for metric in QUOTAS.values()}
"""By kind of quota: the third word of their names, which stands in the clients' metrics too."""
_NEEDS: Final = {
    "plugin": "no such plugin is loaded in the broker, or it was not used yet",
    "draft": "a draft that no Kafka release has; some brokers that were patched early do",
    "traffic": "nothing of the kind has happened since the broker started",
    "partition": "the broker holds or leads no partition of which it could be told",
    "topic": "told by the leader of a topic's partition 0, and this broker leads none",
    "group": "no consumer group has committed to a partition that is led here",
    "client": "no client of this kind lives in this JVM",
    "reporter": "told by the two live brokers with the lowest ids only",
}

_BEAN_MISSING: Final = (
    "it should be there: is it hidden by metrics.jmx.exclude, or its object name mistyped?"
)
_LOG_MISSING: Final = "it should be there: is metadata_log.folder the one that the broker writes?"
_ADMIN_MISSING: Final = "it should be there: may the principal of the agent describe it?"


class Facts(NamedTuple):
    """What is known of the broker beside the metric in question; None: not known.

    Attributes:
        version: Its Kafka version.
        quotas: Kinds of quotas that are set in the cluster.
        tiering: Whether tiered storage is switched on.
        leads: How many partitions it leads.
    """

    version: str | None = None
    quotas: frozenset[str] | None = None
    tiering: bool | None = None
    leads: int | None = None


class Finding(NamedTuple):
    """What became of one metric.

    Attributes:
        state: ``found``; ``wrong``: found, but this version reports it wrongly; ``absent``: not
            there and that is as it should be; ``missing``: not there and it should be.
        beans: How many series there are.
        why: One line for a person; empty where it was found.
    """

    state: State
    beans: int
    why: str


def facts(scrapes: Iterable[Scrape]) -> Facts:
    """What the successful scrapes of a broker tell of it."""
    version, beans, values = None, dict[str, int](), dict[str, float]()
    for scrape in scrapes:
        version = version or (scrape.identity.kafka_version if scrape.identity else None)
        for name, count in counts(scrape).items():
            beans[name] = count
        for reading in scrape.answer.readings if scrape.answer else ():
            values[reading.metric] = sum(value or 0 for value in reading.values.values())
    # Limits are told by two brokers: the others' silence means nothing.
    kinds = {kind for kind, metric in _LIMITS.items() if beans.get(metric)}
    return Facts(
        version,
        frozenset(kinds) if beans.get(FENCED) else None,
        beans[_TIERING_BEAN] > 0 if _TIERING_BEAN in beans else None,
        round(values.get(_LED_BEAN, 0)) if _LED_BEAN in beans else None,
    )


def counts(scrape: Scrape) -> Mapping[str, int]:
    """Series by metric in one scrape; those of ``__other__`` count as one."""
    readings = scrape.answer.readings if scrape.answer else ()
    return {reading.metric: len(reading.zeros) + len(reading.values) for reading in readings}


def finding(metric: Metric, beans: int, known: Facts, via: str = "") -> Finding:
    """What became of a metric whose family was read ``via`` one of the ways of the catalogue."""
    if beans:
        wrong = metric.wrong_in(known.version)
        return Finding("wrong" if wrong else "found", beans, wrong or "")
    why = _version(metric, known.version) or _need(metric, known)
    if why:
        return Finding("absent", 0, why)
    if via == "metadata_log":
        return Finding("missing", 0, _LOG_MISSING)
    return Finding("missing", 0, _ADMIN_MISSING if metric.call else _BEAN_MISSING)


def _version(metric: Metric, version: str | None) -> str | None:
    if version is None:
        return None
    if metric.first and version_key(version) < version_key(metric.first):
        return f"needs Kafka {metric.first} or later; this is {version}"
    if metric.last and version_key(version) > version_key(metric.last):
        return f"gone since Kafka {metric.last}; this is {version}"
    return None


def _need(metric: Metric, known: Facts) -> str | None:
    if metric.call and metric.kind == "counter":
        return "derived by the agent from two readings"
    if metric.above is not None:
        return f"nothing is above {metric.above:,g}, or it is not known"
    if metric.needs == "quota":
        return _quota(metric, known.quotas)
    if metric.needs == "tiering":
        return _tiering(known.tiering)
    if metric.needs == "partition" and known.leads:
        return None  # it leads some, and yet nothing is told of them
    return _NEEDS[metric.needs] if metric.needs else None


def _quota(metric: Metric, quotas: frozenset[str] | None) -> str:
    kind = next((part for part in metric.name.split(".") if part in _LIMITS), None)
    if kind is None:
        return "no replication throttle is set, or nothing was held back by one yet"
    if quotas is None:
        return f"no {kind} quota is set, or no client under one was here in the last hour"
    if kind in quotas:
        return f"a {kind} quota is set; no client under it was here in the last hour"
    return f"no {kind} quota is set"


def _tiering(tiering: bool | None) -> str:  # noqa: FBT001 - three answers, not a switch
    if tiering is None:
        return "tiered storage is switched off, no topic here is tiered, or it was not used yet"
    if tiering:
        return "no topic that is led here is tiered, or nothing of the kind has happened yet"
    return "tiered storage is switched off (remote.log.storage.system.enable)"
