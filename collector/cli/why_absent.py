"""Why a bean is absent, from the catalogue and from what the broker reports of itself.

Absent is not zero, and mostly not wrong either: many beans appear with their first use. A bean
without such a reason is missing, and a person must look.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from collector.catalogue.entries import Metric, version_key
from collector.model import Scrape

State = Literal["found", "wrong", "absent", "missing", "unknown"]

_LED_BEAN: Final = "kafka.broker.led_partitions"
_NEEDS: Final = {
    "quota": "no quota of its kind is set, or nothing came under one in the last hour",
    "tiering": "tiered storage is switched off, no topic here is tiered, or it was not used yet",
    "plugin": "no such plugin is loaded in the broker, or it was not used yet",
    "draft": "a draft that no Kafka release has; some brokers that were patched early do",
    "traffic": "nothing of the kind has happened since the broker started",
    "partition": "the broker holds or leads no partition with this bean",
    "topic": "reported by the leader of a topic's partition 0, and this broker leads none",
    "group": "no consumer group has committed to a partition that is led here",
    "client": "no client of this kind lives in this JVM",
    "reporter": "reported by the two live brokers with the lowest ids only",
}

_BEAN_MISSING: Final = (
    "it should be there: metrics.jmx.exclude or an exporter's rules hide it, or its object name is"
    " mistyped"
)
_LED_MISSING: Final = f"{_BEAN_MISSING}; or they hide InSyncReplicasCount, which shows the leaders"
_LOG_MISSING: Final = "it should be there: is metadata_log.folder the one that the broker writes?"
_ADMIN_MISSING: Final = "it should be there: may the principal of the agent describe it?"


class Facts(NamedTuple):
    """Facts of the broker beside the metric in question; None: not known.

    Attributes:
        version: Its Kafka version.
        leads: How many partitions it leads.
    """

    version: str | None = None
    leads: int | None = None


class Finding(NamedTuple):
    """The result for one metric.

    Attributes:
        state: ``found``; ``wrong``: found, but this version reports it wrongly; ``absent``: not
            there and that is as it should be; ``missing``: not there and it should be;
            ``unknown``: it could not be read.
        beans: How many series there are.
        why: One line for a person; empty where it was found.
    """

    state: State
    beans: int
    why: str


def facts(scrapes: Iterable[Scrape]) -> Facts:
    """Version and led partitions, from the successful scrapes of a broker."""
    version: str | None = None
    leads: int | None = None
    for scrape in scrapes:
        version = version or (scrape.identity.kafka_version if scrape.identity else None)
        for reading in scrape.answer.readings if scrape.answer else ():
            if reading.metric == _LED_BEAN and (reading.zeros or reading.values):
                leads = round(sum(value or 0 for value in reading.values.values()))
    return Facts(version, leads)


def counts(scrape: Scrape) -> Mapping[str, int]:
    """Series by metric in one scrape; those of ``__other__`` count as one."""
    readings = scrape.answer.readings if scrape.answer else ()
    return {reading.metric: len(reading.zeros) + len(reading.values) for reading in readings}


def finding(metric: Metric, beans: int, known: Facts, via: str = "") -> Finding:
    """The finding of a metric whose family was read ``via`` one of the ways of the catalogue."""
    if beans:
        wrong = metric.wrong_in(known.version)
        return Finding("wrong" if wrong else "found", beans, wrong or "")
    if why := _version(metric, known.version) or _need(metric, known):
        return Finding("absent", 0, why)
    of_call = _LOG_MISSING if via == "metadata_log" else _ADMIN_MISSING
    of_bean = _LED_MISSING if metric.led else _BEAN_MISSING
    return Finding("missing", 0, of_call if metric.call else of_bean)


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
    if metric.needs == "partition" and known.leads:
        return None  # it leads partitions, and yet no series of them is there
    return _NEEDS[metric.needs] if metric.needs else None
