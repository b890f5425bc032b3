"""A lake on S3: agents deliver, Spark rolls up and reports, delta-rs reads what came of it.

Not collected by itself, because of the jars it fetches: ``make test-s3-spark``.
"""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from collector.delivery.delivery import Delivery
from collector.encoding.bronze_rows import Batch
from collector.spool.spool import Spool
from demo.jars import delta_jars, s3_jars
from lakehouse import tables
from lakehouse.core.spark_session import JARS_SETTING
from tests.everywhere import small_fleet
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.s3.server import S3Server
from tests.rig.spark_processes import has_python_worker
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests import lake_builder

pytestmark = pytest.mark.spark

LAKE = "lake/jmxlake"
SPARK = ("--engine", "spark")
_OF_THE_SPOOL = ("agent", "batch")
_SITE = """<configuration>
<property><name>fs.s3a.endpoint</name><value>{endpoint}</value></property>
<property><name>fs.s3a.endpoint.region</name><value>{region}</value></property>
<property><name>fs.s3a.path.style.access</name><value>true</value></property>
</configuration>
"""


def deliver(
    batch: lake_builder.Batch, folder: Path, lake: str, options: Callable[[], Mapping[str, str]]
) -> None:
    """Bring rows to bronze as an agent does, through its spool."""
    sealed = Batch(
        {
            table.name: [
                tuple(row[name] for name in table.column_names if name not in _OF_THE_SPOOL)
                for row in rows
            ]
            for table, rows in (
                (tables.RUNS, batch.runs),
                (tables.MEMBERS, batch.members),
                (tables.SCRAPES, batch.scrapes),
            )
        }
    )
    with Spool(folder / f"{batch.agent}.db", 64 << 20) as spool:
        spool.seal([sealed], b"")
        assert Delivery(lake, options, spool).deliver_next() == 1


@contextmanager
def watched(secret: str) -> Iterator[list[str]]:
    """Command lines of our children that show a secret while the block runs."""
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        ours = psutil.Process()
        while not over.wait(0.2):
            for child in ours.children(recursive=True):
                try:
                    seen.extend(word for word in child.cmdline() if secret in word)
                except psutil.Error:
                    continue

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server.start(tmp_path_factory.mktemp("s3")) as server:
        yield server


def environment(server: S3Server, folder: Path) -> dict[str, str]:
    """Where S3 is: for Spark by a file, for delta-rs by variables, as secrets are for both."""
    site = _SITE.format(endpoint=server.endpoint, region=server.options["aws_region"])
    (folder / "core-site.xml").write_text(site)
    return {
        JARS_SETTING: f"{delta_jars()[0].parent}:{s3_jars()[0].parent}",
        "HADOOP_CONF_DIR": str(folder),
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": server.options["aws_region"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": server.options["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": server.options["aws_secret_access_key"],
    }


def test_a_lake_on_s3_gives_the_gold_of_a_folder(server: S3Server, laptop: Jmxlake, tmp_path: Path):
    first, late = small_fleet.batches()
    secret = server.options["aws_secret_access_key"]
    remote = Jmxlake(laptop.wheel, tmp_path, environment(server, tmp_path))
    said = []
    with watched(secret) as shown:
        for batch in (first, late):
            deliver(batch, tmp_path, server.url(LAKE), lambda: server.options)
            said.append(remote("rollup", server.url(LAKE), *SPARK))
        facts = remote.facts(server.url(LAKE))
    assert shown == []
    assert secret not in "".join(said)

    folder = tmp_path / "folder"
    shutil.copytree(server.bucket("lake") / "jmxlake" / "bronze", folder / "bronze")
    laptop("rollup", str(folder), *SPARK)
    wanted: dict[str, list[dict[str, Any]]] = gold_rows(folder / "gold")
    found = gold_rows(f"{server.url(LAKE)}/gold", server.options)
    assert differing(found, wanted) == {}
    assert all(wanted.values())
    assert facts == laptop.facts(str(folder))


def test_without_the_jars_or_with_a_wrong_secret_it_is_one_line(
    server: S3Server, laptop: Jmxlake, tmp_path: Path
):
    known = environment(server, tmp_path)
    for more, told in (
        ({JARS_SETTING: str(delta_jars()[0].parent)}, "S3AFileSystem not found"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "403"),
    ):
        remote = Jmxlake(laptop.wheel, tmp_path, {**known, **more})
        said = remote.refusal("rollup", server.url(LAKE), "--since", "2026-11-09", *SPARK)
        assert said.startswith("jmxlake: Spark failed")
        assert told in said


def test_a_store_that_goes_away_is_one_line_and_the_next_rollup_is_whole(
    server: S3Server, laptop: Jmxlake, tmp_path: Path
):
    lake = "lake/away"
    for batch in small_fleet.batches():
        deliver(batch, tmp_path, server.url(lake), lambda: server.options)
    remote = Jmxlake(laptop.wheel, tmp_path, environment(server, tmp_path))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(remote.ended, "rollup", server.url(lake), *SPARK)
        wait_for(lambda: has_python_worker(os.getpid()), 300, every=0.05)
        server.pause()
        try:
            code, _, said = running.result()
        finally:
            server.resume()
    assert code == 1, said
    assert "Traceback" not in said
    assert server.url(lake) in said.splitlines()[-1]
    code, _, said = remote.ended("rollup", server.url(lake), *SPARK)
    # The lease could not be released; on a slow machine it has run out.
    if code != 0:
        assert (code, "--take-over" in said.splitlines()[-1]) == (3, True)
        remote("rollup", server.url(lake), *SPARK, "--take-over")
    folder = tmp_path / "folder"
    shutil.copytree(server.bucket("lake") / "away" / "bronze", folder / "bronze")
    laptop("rollup", str(folder), "--engine", "local")
    found = gold_rows(f"{server.url(lake)}/gold", server.options)
    assert differing(found, gold_rows(folder / "gold")) == {}
