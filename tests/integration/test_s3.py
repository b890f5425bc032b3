"""Delivery into a real S3 server, through a proxy that does what networks and stores do."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable, QueryBuilder

from collector.delivery.delivery import Delivery
from collector.encoding.bronze_rows import Batch
from collector.errors import LakeError
from collector.spool.spool import Spool
from demo.ports import free_ports
from tests.rig.s3 import rules
from tests.rig.s3.fake_unconditional import FakeUnconditionalStore
from tests.rig.s3.proxy import FaultyProxy
from tests.rig.s3.server import S3Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.rig.s3.rules import Rule

MIB = 1 << 20
MINUTE = 60_000_000
WINDOW = 5 * MINUTE
NOON = 20_000 * 86_400_000_000 + 12 * 60 * MINUTE
RUNS_A_WINDOW = 5
PATIENCE = {"timeout": "2s", "connect_timeout": "2s", "retry_timeout": "1s"}
ATTEMPTS = 4  # until a fault that comes once must be over
RUN_COMMITS = "*/runs/_delta_log/*.json"
RUN_DATA = "*/runs/*.parquet"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server.start(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def proxy(server: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def lake(server: S3Server, request: pytest.FixtureRequest) -> str:
    safe = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return server.url(f"lake/{safe}")


@pytest.fixture
def options(server: S3Server, proxy: FaultyProxy) -> dict[str, str]:
    return {**server.options_through(proxy.endpoint), **PATIENCE}


class Host:
    """One agent's spool, what was sealed into it, and its delivery."""

    def __init__(self, spool: Spool, lake: str, options: dict[str, str]) -> None:
        self.spool, self.windows = spool, 0
        self.delivery = Delivery(lake, lambda: options, spool)

    def seal(self, count: int = 1) -> None:
        for _ in range(count):
            self.windows += 1
            self.spool.seal([window(self.windows)], b"")

    def drain(self, attempts: int = 1) -> list[LakeError]:
        """Deliver all that waits; the errors on the way, fewer than ``attempts``."""
        errors: list[LakeError] = []
        while True:
            try:
                while self.delivery.deliver_next():
                    pass
            except LakeError as error:
                errors.append(error)
                if len(errors) == attempts:
                    raise
            else:
                return errors

    @property
    def rows(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """What the lake is to hold of this agent, once each."""
        numbers = range(1, self.windows + 1)
        return {
            "runs": Counter((self.spool.agent, n, f"{row}") for n in numbers for row in runs_of(n)),
            "members": Counter((self.spool.agent, n, f"set-{n}") for n in numbers),
            "scrapes": Counter((self.spool.agent, n, "min_isr") for n in numbers),
            "events": Counter((self.spool.agent, n, f"note-{n}") for n in numbers),
        }


def runs_of(number: int) -> range:
    return range(number * RUNS_A_WINDOW, (number + 1) * RUNS_A_WINDOW)


def window(number: int) -> Batch:
    """Rows of all four tables, each of which can be told from all others."""
    start, nobody = NOON + number * WINDOW, (None, None, None)
    end, day = start + WINDOW, (start // 86_400_000_000, "cluster", "broker-1")
    return Batch(
        {
            "members": [(f"set-{number}", "cluster", "partitions", "t", (1, 2), None)],
            "runs": [
                (*day, "metric", f"{row}", 0, *nobody, None, start, end, 0, 0, 1.5, 30, 1,
                 f"set-{number}", None)
                for row in runs_of(number)
            ],
            "scrapes": [
                (*day, "min_isr", start, end, "ok", 30, 10, 0, 0.5, 0.1, 10_000_000, 25_000_000,
                 "catalogue", "4.3.1", None)
            ],
            "events": [(*day, start, "note", None, None, *nobody, None, f"note-{number}")],
        }
    )  # fmt: skip


IDENTITY = {"runs": "topic", "members": '"set"', "scrapes": "family", "events": '"new"'}


def told(lake: str, server: S3Server) -> dict[str, Counter[tuple[Any, ...]]]:
    """What the lake holds, as DuckDB reads the files and delta-rs the tables: the same."""
    found = {}
    for name, column in IDENTITY.items():
        table = DeltaTable(f"{lake}/bronze/{name}", storage_options=server.options)
        files = [str(server.bucket("lake").parent / uri.removeprefix("s3://"))
                 for uri in table.file_uris()]  # fmt: skip
        rows = duckdb.read_parquet(files).project(f"agent, batch, {column}").fetchall()
        found[name] = Counter(rows)
        query = f"SELECT agent, batch, {column} FROM bronze"  # noqa: S608 (names of ours)
        batches = QueryBuilder().register("bronze", table).execute(query).read_all()
        columns = [batches.column(index).to_pylist() for index in range(3)]
        assert Counter(zip(*columns, strict=True)) == found[name]
    return found


@contextmanager
def host(folder: Path, lake: str, options: dict[str, str]) -> Iterator[Host]:
    with Spool(folder / "spool.db", 64 * MIB) as spool:
        yield Host(spool, lake, options)


def check_once(server: S3Server, lake: str, *hosts: Host) -> None:
    """Every row once; but a set may come again, with the batch that brought it."""
    expected: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in IDENTITY}
    for one in hosts:
        assert one.spool.is_empty()
        for name, rows in one.rows.items():
            expected[name] += rows
    found = told(lake, server)
    sets = {(agent, key) for agent, _, key in found.pop("members")}
    assert sets >= {(agent, key) for agent, _, key in expected.pop("members")}
    assert found == expected


def test_windows_arrive_once(
    server: S3Server, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    with host(tmp_path, lake, options) as one:
        one.seal(3)
        one.drain()
        one.seal()
        one.drain()
        check_once(server, lake, one)


def test_four_agents_at_once_lose_and_double_nothing(
    server: S3Server, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    """They make the tables together too: nobody was there before them."""
    rounds, start = 5, threading.Barrier(4)

    def work(one: Host) -> None:
        start.wait()
        for _ in range(rounds):
            one.seal()
            one.drain()

    with (
        host(tmp_path / "1", lake, options) as a, host(tmp_path / "2", lake, options) as b,
        host(tmp_path / "3", lake, options) as c, host(tmp_path / "4", lake, options) as d,
    ):  # fmt: skip
        hosts = (a, b, c, d)
        threads = [threading.Thread(target=work, args=(one,)) for one in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.windows for one in hosts] == [rounds] * 4
        check_once(server, lake, *hosts)
        versions = DeltaTable(f"{lake}/bronze/runs", storage_options=server.options).version()
        assert versions == 4 * rounds, "a commit for each"


def test_slower_table_creator_uses_the_faster_ones(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    with (
        host(tmp_path / "1", lake, options) as slower,
        host(tmp_path / "2", lake, server.options) as faster,
    ):
        first = f"{RUN_COMMITS[:-6]}{0:020}.json"
        proxy.plan(rules.Rule("PUT", first, before=lambda _: faster.delivery.check() and None))
        for one in (slower, faster):
            one.seal()
            one.drain()
        assert ("PUT", 412) in {(seen.method, seen.status) for seen in proxy.seen}
        check_once(server, lake, slower, faster)


CONDITIONS = {
    "409": lambda key: rules.refused(409, key=key),
    "412": lambda key: rules.refused(412, key=key),
}
FAULTS: dict[str, Callable[[str], Rule]] = {
    "500": lambda key: rules.refused(500, key=key),
    "503": lambda key: rules.refused(503, key=key),
    "503 for long": lambda key: rules.refused(503, key=key, times=6),
    "lost": lambda key: rules.answer_lost(key=key),
    "500 though done": lambda key: rules.landed_but(500, key=key),
    "hangs though done": lambda key: rules.answer_hangs(key=key),
    "never arrives": lambda key: rules.Rule("PUT", key, forward=False, silent=True),
    "slow": lambda key: rules.slow(0.5, key=key),
}


@pytest.mark.parametrize("fault", [*FAULTS, *CONDITIONS])
def test_a_commit_that_meets_trouble_lands_once(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path,
    fault: str,
) -> None:  # fmt: skip
    with host(tmp_path, lake, options) as one:
        one.seal()
        one.drain()
        proxy.clear()
        rule = (FAULTS | CONDITIONS)[fault](RUN_COMMITS)
        proxy.plan(rule)
        one.seal(2)
        one.drain(ATTEMPTS)
        assert met(rule, proxy)
        check_once(server, lake, one)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_data_file_that_meets_trouble_is_written_once(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path,
    fault: str,
) -> None:  # fmt: skip
    with host(tmp_path, lake, options) as one:
        one.seal()
        one.drain()
        proxy.clear()
        rule = FAULTS[fault](RUN_DATA)
        proxy.plan(rule)
        one.seal(2)
        one.drain(ATTEMPTS)
        assert met(rule, proxy)
        check_once(server, lake, one)


@pytest.mark.parametrize("fault", [*FAULTS, *CONDITIONS])
def test_table_creation_with_faults_happens_once(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path,
    fault: str,
) -> None:  # fmt: skip
    rule = (FAULTS | CONDITIONS)[fault](RUN_COMMITS)
    proxy.plan(rule)
    with host(tmp_path, lake, options) as one:
        one.seal()
        one.drain(ATTEMPTS)
        assert met(rule, proxy)
        check_once(server, lake, one)


def met(rule: Rule, proxy: FaultyProxy) -> bool:
    """Whether the rule was carried out: something came that it is about, and was told so."""
    status = rule.answer.status if rule.answer else None if rule.silent else 200
    return any(rule.matches(rules.Request(*seen[:2])) and seen.status == status
               for seen in proxy.seen)  # fmt: skip


def test_a_day_without_the_store_is_brought_in_few_commits(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    day = 288
    with host(tmp_path, lake, options) as one:
        one.seal()
        one.drain()
        up_again = proxy.plan(rules.down())
        one.seal(day // 2)
        with pytest.raises(LakeError):
            one.drain()
        one.seal(day // 2)
        with pytest.raises(LakeError):
            one.drain()
        assert one.spool.depth().batches == day
        up_again()
        one.drain()
        check_once(server, lake, one)
        for name in IDENTITY:
            table = DeltaTable(f"{lake}/bronze/{name}", storage_options=server.options)
            assert table.version() <= 1 + 10


WRONG: dict[str, tuple[str, dict[str, str]]] = {
    "bucket": ("bucket", {}),
    "key": ("No user exists", {"aws_access_key_id": "somebody-else"}),  # versitygw's own words
    "secret": (
        "rejected the credentials",
        {"aws_secret_access_key": "wrong-secret-of-forty-letters"},
    ),
    "endpoint": ("cannot be reached", {"aws_endpoint": f"http://127.0.0.1:{free_ports(1)[0]}"}),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_configuration_is_reported_without_loss(
    server: S3Server, lake: str, options: dict[str, str], tmp_path: Path, what: str
) -> None:
    said, wrong = WRONG[what]
    given = {**options, **wrong}
    there = lake.replace("s3://lake/", "s3://nowhere/") if what == "bucket" else lake
    with host(tmp_path, there, given) as one:
        check_refused(one, given, said)
    with host(tmp_path, lake, options) as one:
        one.windows = 2
        one.drain()
        check_once(server, lake, one)


def test_renewed_credentials_are_used_without_restart(
    server: S3Server, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    given = {**options, **WRONG["secret"][1]}
    with host(tmp_path, lake, given) as one:
        check_refused(one, given, "rejected the credentials")
        given.update(options)
        one.drain()
        check_once(server, lake, one)


def test_expired_token_is_reported_without_loss(
    server: S3Server, proxy: FaultyProxy, lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    """versitygw knows no temporary credentials, so the proxy answers as AWS does."""
    expired = rules.Rule(forward=False, answer=rules.Answer(400, "ExpiredToken"), times=None)
    with host(tmp_path, lake, options) as one:
        renewed = proxy.plan(expired)
        check_refused(one, options, "expired")
        renewed()
        one.drain()
        check_once(server, lake, one)


def check_refused(one: Host, options: dict[str, str], said: str) -> None:
    one.seal(2)
    with pytest.raises(LakeError, match=said) as caught:
        one.drain()
    text = str(caught.value)
    assert "\n" not in text
    assert options["aws_secret_access_key"] not in text
    assert options["aws_access_key_id"] not in text
    assert one.spool.depth().batches == 2


def test_check_refuses_store_without_conditional_put(
    lake: str, options: dict[str, str], tmp_path: Path
) -> None:
    with host(tmp_path / "real", lake, options) as one:
        one.delivery.check()
        one.delivery.check_store()
    with FakeUnconditionalStore() as fake, host(tmp_path, "s3://lake/fake", fake.options) as one:
        one.delivery.check()
        with pytest.raises(LakeError, match=r"two commits of one version .* \(If-None-Match\)"):
            one.delivery.check_store()
