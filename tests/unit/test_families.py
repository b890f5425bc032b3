"""Which family tells a metric: the rollup must know without the catalogue, and know the same."""

from __future__ import annotations

from collector import catalogue
from lakehouse import metrics, slo

OF_METRICS = {m.name: family.name for family in catalogue.load().families for m in family.metrics}


def test_the_family_of_a_metric_is_that_of_the_catalogue():
    known = {name: metrics.family(name) for name in OF_METRICS if metrics.family(name)}
    assert known
    assert known == {name: OF_METRICS[name] for name in known}


def test_it_is_known_of_every_metric_of_clients_and_every_lag_of_topics():
    of_clients = {name for name in OF_METRICS if name.startswith("kafka.client.")}
    of_lags = {one.metric for one in metrics.WATCHED_OF["topic"] if "lag" in one.metric}
    promised = {one.metric for one in slo.load() if one.level == "client"}
    assert all(map(metrics.family, of_clients | of_lags | promised))


def test_of_a_users_own_bean_it_is_not_known():
    assert metrics.family("acme.cache.misses") is None
