"""What is folded stays folded: an hour of many subjects fits into what the kernel may use.

The bound is the kernel's own limit of memory. Unfolded, the hour of clients is 3.6 million claims,
that of partitions 1.2 million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse.kernel.run_in_duckdb import MOST_OF_A_PIECE
from tests.kernel_inputs import HOUR, one_call
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from lakehouse.kernel import run_in_duckdb

pytestmark = pytest.mark.slow

CLIENTS, BROKERS, TOPICS, PARTITIONS, WINDOWS = 5000, 20, 500, 200, 12
UPLOAD_LAG = "kafka.partition.upload_tier_lag"
THROTTLES = ("produce", "fetch", "request")


def test_idle_clients_are_computed_once_and_not_once_a_broker_and_window(
    program: run_in_duckdb.Program,
):
    batch = Batch()
    clients: list[tuple[str | None, str | None]] = [("u", f"c{n}") for n in range(CLIENTS)]
    for source in (f"broker-{number}" for number in range(BROKERS)):
        for start in range(0, 300 * WINDOWS, 300):
            batch.scrape("quotas", start, start + 300, source=source)
            for kind in THROTTLES:
                metric = f"kafka.client.{kind}.throttle_time"
                batch.idle(metric, start, start + 300, clients, source=source)
    found = one_call(batch).roll_up(program)
    assert found["clients"].num_rows == found["clients_windows"].num_rows == 0
    of_clients = found["sli"].filter(pc.is_valid(found["sli"]["client_id"]))
    assert of_clients.num_rows == CLIENTS * len(THROTTLES)
    assert pc.unique(of_clients["good_us"]).to_pylist() == [HOUR]
    assert of_whom(found["sli_windows"], "client_id") == 0
    assert of_whom(found["subjects"], "client_id") == CLIENTS


def test_partitions_that_are_well_stay_in_their_sets(program: run_in_duckdb.Program):
    batch, partitions = Batch(), list(range(PARTITIONS))
    for topic in (f"t{number}" for number in range(TOPICS)):
        for start in range(0, 300 * WINDOWS, 300):
            where = {"topic": topic, "partitions": partitions}
            batch.zeros("kafka.partition.under_min_isr", start, start + 300, **where)
            batch.run("kafka.topic.partitions", start, start + 300, PARTITIONS, topic=topic)
    found = one_call(batch).roll_up(program)
    assert found["partitions"].num_rows == 0
    of_topics = found["sli"].filter(pc.is_valid(found["sli"]["topic"]))
    assert pc.unique(of_topics["good_us"]).to_pylist() == [HOUR]
    observed = pc.sum(found["topics"]["series_seen_us"]).as_py()
    assert observed == 2 * TOPICS * PARTITIONS * HOUR, "each metric of min ISR, and what it implies"


def test_a_part_fits_whatever_is_in_it(program: run_in_duckdb.Program):
    """At worst each run is all there is of its series in its window: sums are as many as runs."""
    batch, copies = Batch(), 20
    for number in range(MOST_OF_A_PIECE // copies // WINDOWS):
        topic = f"t{number % 50}"
        for start in range(0, 300 * WINDOWS, 300):
            batch.run(UPLOAD_LAG, start, start + 300, 1.5, topic=topic, partition=number // 50)
    call = one_call(batch)
    runs, rows = call.parts[0], []
    for copy in range(copies):
        named = pc.binary_join_element_wise(runs["topic"], f"copy-{copy}", ".")
        rows.append(runs.set_column(runs.column_names.index("topic"), "topic", named))
    found = replace(call, parts=[pa.concat_tables(rows)]).roll_up(program)
    assert found["partitions_windows"].num_rows == copies * runs.num_rows


def of_whom(rows: pa.Table, name: str) -> int:
    """How many rows are of one who has such a name."""
    return len(rows) - int(rows[name].null_count)
