"""A session that somebody else has made: a notebook's, a job's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse.core.spark_session import session
from lakehouse.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[str]:
    spark.conf.set(ZONE, "Europe/Berlin")
    yield "Europe/Berlin"
    spark.conf.set(ZONE, "UTC")


def test_it_is_taken_as_it_is(spark: SparkSession):
    assert session() is spark


def test_one_in_another_zone_is_refused(elsewhere: str):
    with pytest.raises(EngineError, match=f"is {elsewhere}. Set {ZONE} to UTC"):
        session()


@pytest.mark.parametrize("zone", ["Etc/UTC", "Z"])
def test_other_names_of_utc_are_let_through(spark: SparkSession, elsewhere: str, zone: str):
    assert elsewhere != zone
    spark.conf.set(ZONE, zone)
    assert session() is spark
