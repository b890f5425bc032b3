"""Why a metric has series or not: the findings of ``check``.

Absent is not zero, and usually not an error: many MBeans appear with their first use. The catalogue
and the broker's own metrics give the reason. An MBean without such a reason is missing, and a
person must find the cause.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from collector.catalogue.entries import Metric, version_key
from collector.model import Scrape

State = Literal["found", "wrong", "absent", "missing", "unknown"]

_LED_BEAN: Final = "kafka.broker.led_partitions"
_NEEDS: Final = {
    "quota": "no quota of its kind is set, or no client was subject to it in the last hour",
    "tiering": "tiered storage is disabled, no topic is tiered, or tiering was not used yet",
    "plugin": "the broker has not loaded the plugin, or has not used it yet",
    "draft": "a draft that no Kafka release contains; some patched brokers have it",
    "traffic": "no such event since the broker started",
    "partition": "the broker does not hold or lead a partition with this MBean",
    "topic": "the leader of a topic's partition 0 reports it, and this broker leads none",
    "group": "no consumer group has committed to a partition that this broker leads",
    "client": "no client of this kind runs in this JVM",
    "reporter": "only the two live brokers with the lowest IDs report it",
}

_BEAN_MISSING: Final = (
    "expected, but metrics.jmx.exclude or an exporter's rules hide it, or its object name is wrong"
)
_LED_MISSING: Final = f"{_BEAN_MISSING}; or they hide InSyncReplicasCount, which identifies leaders"
_CALL_MISSING: Final = {
    "metadata_log": "expected: check that metadata_log.folder is the folder that the broker writes",
    "remote_log": "expected: check that remote_log.log_dirs are the broker's log.dirs",
}
_ADMIN_MISSING: Final = (
    "expected: check that the agent's principal has the permission to describe it"
)


class Facts(NamedTuple):
    """Facts about the broker. None: not known.

    Attributes:
        version: Kafka version.
        leads: Number of partitions that it leads.
    """

    version: str | None = None
    leads: int | None = None


class Finding(NamedTuple):
    """The result for one metric.

    Attributes:
        state: ``found``, or ``wrong`` if this version reports wrong values. ``absent`` is for a
            good reason, ``missing`` is without a reason. ``unknown``: the scrape failed.
        beans: Number of series.
        why: Reason, in one line. Empty if found.
    """

    state: State
    beans: int
    why: str


def facts(scrapes: Iterable[Scrape]) -> Facts:
    """Return version and number of led partitions from the successful scrapes of a broker."""
    version: str | None = None
    leads: int | None = None
    for scrape in scrapes:
        version = version or (scrape.identity.kafka_version if scrape.identity else None)
        for reading in scrape.answer.readings if scrape.answer else ():
            if reading.metric == _LED_BEAN and (reading.zeros or reading.values):
                leads = round(sum(value or 0 for value in reading.values.values()))
    return Facts(version, leads)


def counts(scrape: Scrape) -> Mapping[str, int]:
    """Return the number of series by metric in a scrape; ``__other__`` counts as one."""
    readings = scrape.answer.readings if scrape.answer else ()
    return {reading.metric: len(reading.zeros) + len(reading.values) for reading in readings}


def explain(metric: Metric, beans: int, known: Facts, via: str = "") -> Finding:
    """Return the finding of a metric; ``via`` is the transport of its family."""
    if beans:
        wrong = metric.wrong_in(known.version)
        return Finding("wrong" if wrong else "found", beans, wrong or "")
    if why := _version(metric, known.version) or _need(metric, known):
        return Finding("absent", 0, why)
    of_call = _CALL_MISSING.get(via, _ADMIN_MISSING)
    of_bean = _LED_MISSING if metric.led else _BEAN_MISSING
    return Finding("missing", 0, of_call if metric.call else of_bean)


def _version(metric: Metric, version: str | None) -> str | None:
    if version is None:
        return None
    if metric.first and version_key(version) < version_key(metric.first):
        return f"requires Kafka {metric.first} or later; the broker has {version}"
    if metric.last and version_key(version) > version_key(metric.last):
        return f"removed after Kafka {metric.last}; the broker has {version}"
    return None


def _need(metric: Metric, known: Facts) -> str | None:
    if metric.call and metric.kind == "counter":
        return "the agent derives it from two scrapes"
    if metric.above is not None:
        return f"no value is above {metric.above:,g}, or the values are unknown"
    if metric.needs == "partition" and known.leads:
        return None  # the broker leads partitions, but no series of them exists
    return _NEEDS[metric.needs] if metric.needs else None
