"""Series of clients: throttling, rates and quotas."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from lakehouse.core.periods import DAY_US, HOUR_US
from lakehouse.sample import cluster
from lakehouse.sample.cluster import MINUTE_US, SECOND_US, Client, Subject
from lakehouse.sample.incidents import MARGIN_US
from lakehouse.sample.timeline import Series, Timeline
from lakehouse.sample.what_scrapes_see import History

_BUSY_HOURS: Final = {8: 0.5, 10: 1.0, 14: 0.7, 18: 0.0}
"""From which hour of a day on clients use which part of their share; none is throttled then."""

_OVER: Final = 1.004
"""Share of its quota that a throttled client uses."""

_THROTTLES_MS: Final = (120.0, 260.0, 410.0, 260.0)


def of_client(of: Timeline, source: int, client: Client) -> Iterator[Series]:
    """Yield the series of a client."""
    for metric in (*cluster.THROTTLES, *cluster.RATES):
        history: History = [(of.start_us, None)]
        if client.broker == source and metric.split(".")[2] == client.kind:
            history += (_throttled if metric in cluster.THROTTLES else _rate)(of, client)
        yield Series(Subject(metric, user=client.user, client_id=client.client_id), history)


def of_quotas(of: Timeline, source: int) -> Iterator[Series]:
    """Yield the series of the quotas in force."""
    limit = of.by_epoch(source, (), cluster.QUOTA)
    for metric in cluster.QUOTAS:
        yield Series(Subject(metric, labels=(("default", "user,client-id"),)), limit)
        for user, client_id in cluster.OWN_QUOTAS.get(metric.split(".")[2], ()):
            yield Series(Subject(metric, user=user, client_id=client_id), limit)


def _throttled(of: Timeline, client: Client) -> History:
    history: History = []
    for from_us, to_us in of.spans("throttled", client.client_id):
        times = range(from_us, to_us, 2 * MINUTE_US)
        history += [(at_us, _THROTTLES_MS[n % 4]) for n, at_us in enumerate(times)]
        history.append((to_us, None))
    return history


def _rate(of: Timeline, client: Client) -> History:
    """Return a few rates a day."""
    first_us = of.start_us // DAY_US * DAY_US
    changes: History = [
        (day_us + hour * HOUR_US + 40 * SECOND_US, cluster.QUOTA * client.share * part or None)
        for day_us in range(first_us, of.until_us, DAY_US)
        for hour, part in _BUSY_HOURS.items()
    ]
    for from_us, to_us in of.spans("throttled", client.client_id):
        usual = next(value for at_us, value in reversed(changes) if at_us <= from_us)
        changes += [(from_us, cluster.QUOTA * _OVER), (to_us, usual)]
        changes.sort(key=itemgetter(0))
    low, high = of.start_us + MARGIN_US, of.until_us - MARGIN_US
    return [one for one in changes if low <= one[0] <= high]
