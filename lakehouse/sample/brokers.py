"""Series of brokers' answers to requests, of nodes and of the controller."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from lakehouse.core.metrics import NODE_FENCED
from lakehouse.sample import cluster
from lakehouse.sample.cluster import BROKERS, MINUTE_US, SOURCES, TOPICS, Subject
from lakehouse.sample.partitions import refused_writes
from lakehouse.sample.timeline import Series, Timeline
from lakehouse.sample.what_scrapes_see import History

_PER_WINDOW: Final = {"produce": 1_100.0, "fetch": 2_300.0}
"""Answers of a broker in a window at a busy hour, for each percent."""

_P99_EVERY_US: Final = 15 * MINUTE_US
_BUSY_MS: Final = (900.0, 1_400.0)
_REFUSED: Final = "NOT_ENOUGH_REPLICAS"


def of_requests(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of a broker's answers."""
    zero: History = [(of.start_us, 0.0)]
    refused = refused_writes(of, source)
    for kind, metric in cluster.ANSWERS.items():
        flow = _PER_WINDOW[kind]
        yield Series(Subject(metric, labels=(("error", "NONE"),)), zero, flow=flow)
        yield Series(Subject(f"{metric}_good"), zero, flow=flow)
    produced = cluster.ANSWERS["produce"]
    yield Series(Subject(produced, labels=(("error", _REFUSED),)), zero, refused)
    yield Series(Subject(cluster.REFUSED_WRITES), zero, refused)
    for metric, flow in zip(cluster.REQUESTS, _PER_WINDOW.values(), strict=True):
        yield Series(Subject(metric), zero, flow=flow // 2)
    for metric, base in zip(cluster.SLOWEST, (18.0, 505.0), strict=True):
        yield Series(Subject(metric), _p99(of, source, base))


def _p99(of: Timeline, source: int, base: float) -> History:
    """Return a time that follows the load and grows during outages and busy times."""
    every = range(of.start_us, of.until_us, _P99_EVERY_US)
    history: History = [(at, base + of.busy(at + source * MINUTE_US) // 10) for at in every]
    away = [(one.from_us, one.to_us + MINUTE_US) for one in of.away if one.broker != source]
    slow = [*((span, _BUSY_MS[0]) for span in away if span[1] - span[0] > 3 * MINUTE_US)]
    slow += [(span, _BUSY_MS[1]) for span in of.spans("busy", SOURCES[source])]
    for (from_us, to_us), most in slow:
        history = [one for one in history if not from_us <= one[0] <= to_us]
        history += [(from_us, most), (to_us, base)]
    return sorted(history)


def of_nodes(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of fenced brokers."""
    for broker in BROKERS:
        history = of.by_epoch(source, (), partial(_is, broker))
        labels = ("node", SOURCES[broker]), ("rack", cluster.RACKS[broker])
        yield Series(Subject(NODE_FENCED, labels=labels), history)


def _is(broker: int, fenced: int | None) -> float:
    return float(fenced == broker)


def of_controller(of: Timeline) -> Iterator[Series]:
    """Yield the series of the controller."""
    every = [one.brokers(n) for one in TOPICS.values() for n in range(one.partitions)]
    for number, metric in enumerate(cluster.CONTROLLERS):
        history: History = []
        for at_us, fenced in of.epochs:
            leaderless, away = sum(one == (fenced,) for one in every), int(fenced is not None)
            history.append((at_us, float((leaderless, 1, away, len(BROKERS) - away)[number])))
        yield Series(Subject(metric), history)
