from __future__ import annotations

import functools
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lanes import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


# A shell that starts us in the background has SIGINT ignored, by us and by all that we start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--demo", metavar="FOLDER", help="compare what an earlier `make demo` left there"
    )
    parser.addoption(
        "--golden", action="store_true", help="write golden files anew; look at what changed"
    )
    parser.addoption(
        "--spark",
        choices=("classic", "connect"),
        default="classic",
        help="run the tests that use Spark in this process, or over Spark Connect",
    )


_text = functools.cache(functools.partial(Path.read_text, encoding="utf-8"))


@pytest.hookimpl(tryfirst=True)  # before -m leaves tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that its lane would not find, as its file does not contain its marks."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "nightly" not in marks:
            for missing in (one for one in marks & MARKS if f"mark.{one}" not in _text(item.path)):
                raise pytest.UsageError(f"{item.nodeid}: the file does not contain mark.{missing}")


# What Spark needs is imported by those who ask for it: others must not pay for it.


@pytest.fixture(scope="session")
def stated_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the small fleet's lake with its week stated. Tests that change it copy it."""
    from tests.everywhere import small_fleet  # noqa: PLC0415

    return small_fleet.stated(tmp_path_factory.mktemp("stated") / "lake")


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """One session for all modules, as the command starts it."""
    from demo.jars import delta_jars  # noqa: PLC0415
    from lakehouse.core import spark_session  # noqa: PLC0415

    if request.config.getoption("--spark") == "classic":
        os.environ[spark_session.JARS_SETTING] = str(delta_jars()[0].parent)
        yield spark_session.session()  # it ends with the process
        return
    from tests.rig.connect_server import ConnectServer  # noqa: PLC0415

    with ConnectServer(tmp_path_factory.mktemp("connect")) as server:
        os.environ["SPARK_REMOTE"] = server.remote
        yield (remote := spark_session.session())
        remote.stop()
