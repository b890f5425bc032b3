"""With which family a metric is read: the lakehouse knows it from the agents' definitions alone."""

from __future__ import annotations

from collector import catalogue
from docs.tools import definitions as shipped
from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.core.metrics import Definition, families, families_by_metric
from lakehouse.slo.openslo import objective_files

CATALOGUE = catalogue.load()


def test_what_is_shipped_is_of_the_catalogue_that_is_shipped():
    assert shipped.FILE.read_text("utf-8") == shipped.text(), "make definitions"


def test_the_families_of_a_metric_are_those_of_the_catalogue():
    read = {metric.name: family.name for family in CATALOGUE.families for metric in family.metrics}
    assert all(family in families(metric) for metric, family in read.items())
    assert families("kafka.client.fetch.throttle_time") == {"quotas"}


def test_a_metric_that_another_family_replaces_is_read_with_each():
    assert families(metrics.UNDER_MIN_ISR) == {"min_isr", "metadata_log", "partitions"}
    assert families(f"{metrics.UNDER_MIN_ISR}.jmx") == {"min_isr"}


def test_it_is_known_of_all_that_is_looked_for_and_promised_but_what_is_derived():
    looked_for = {
        one.metric for kind in metrics.WATCHED_OF.values() for one in kind if one.families
    }
    assert looked_for == {one.metric for kind in metrics.WATCHED_OF.values() for one in kind}
    promised = {one.metric for one in objective_files.load()}
    assert {one for one in promised if not families(one)} <= {
        metrics.UNAVAILABLE,
        metrics.COVERAGE,
        "kafka.group.non_consumed",
    }


def test_a_users_own_metric_is_known_by_the_lake():
    assert families("acme.cache.misses") == frozenset()
    assert families_by_metric([Definition("acme.cache.misses", "acme", "idle")])[
        "acme.cache.misses"
    ] == {"acme"}


def test_each_metric_is_defined_once_with_all_that_the_table_asks_for():
    rows = list(CATALOGUE.definitions())
    assert {row[1] for row in rows} == CATALOGUE.metrics.keys()
    families = [(one.name, metric.name) for one in CATALOGUE.families for metric in one.metrics]
    assert sorted((row[2], row[1]) for row in rows) == sorted(families)
    columns = tables.METRIC_DEFINITIONS.column_names[:-1]
    for row in rows:
        told = dict(zip(columns, row, strict=True))
        assert all(value is not None for value in told.values()), told
        assert told["catalogue"] == CATALOGUE.hash
