"""The Spark UI says of each job of a rollup what it is for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from demo.jars import delta_jars
from lakehouse.core import spark_session
from tests.everywhere import small_fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

_ROLLUP = """
import sys
from lakehouse.core import lake, spark_session
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
_, root, log, kind = sys.argv
spark_session._CONF |= {
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": log, "spark.eventLog.compress": "false"
}
spark, found = spark_session.session(), lake.at(root)
engine = SparkWithDeltaRs(found, lambda: spark, {}) if kind == "path" else SparkEngine(spark, found)
rollup(engine, (), Wanted(tidy="never"))
rollup(engine, (), Wanted(tidy="never"))  # nothing is new
spark.stop()
"""


@pytest.mark.parametrize("kind", ["path", "catalog"])
def test_every_job_of_a_rollup_says_what_it_is_for(tmp_path: Path, kind: str):
    root, log = tmp_path / "lake", tmp_path / "events"
    log.mkdir()
    for batch in small_fleet.batches():
        batch.commit(root)
    environment = os.environ | {spark_session.JARS_SETTING: str(delta_jars()[0].parent)}
    command = [sys.executable, "-c", _ROLLUP, str(root), log.as_uri(), kind]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=900)
    events = [
        json.loads(line)
        for file in log.rglob("*events*")
        if file.is_file()
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    jobs = [one for one in events if one["Event"] == "SparkListenerJobStart"]
    told = [one["Properties"].get("spark.job.description") for one in jobs]
    # Delta puts "Delta: " before the description of its own jobs.
    assert [one for one in told if "jmxlake rollup" not in str(one)] == []
    assert any(re.match(r"jmxlake rollup batch 1 of 1 with \d+ parts", one) for one in told)
    last = [one for one in told if "jmxlake rollup batch" in str(one)][-1]
    after = told[len(told) - told[::-1].index(last) :]
    assert (len(after) > 5) == (kind == "catalog"), "the next pass plans in Spark"
    # Delta runs some jobs in threads of its own, where Spark keeps the description and no tag.
    tags = [one["Properties"].get("spark.job.tags", "") for one in jobs]
    assert any(re.search(r"jmxlake rollup batch 1 of 1 with \d+ parts", one) for one in tags)
