"""Names that clients choose for themselves: from the bean through spool and Delta and back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import duckdb
import pytest
from deltalake import DeltaTable

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import Metric
from collector.delivery.delivery import Delivery
from collector.encoding.encoder import Encoder
from collector.errors import IdentityError, SourceError
from collector.model import (
    Answer,
    Commit,
    Identity,
    Partition,
    Reading,
    Scrape,
    Series,
    SystemClock,
)
from collector.sources.admin.client import QuotaEntity
from collector.sources.admin.offsets import commits_in
from collector.sources.admin.readings import quota_limits
from collector.sources.admin.watched_groups import GroupRules
from collector.sources.base.beans import keys_of, series_of
from collector.sources.base.identity import Expected
from collector.sources.base.lake_limits import capped, lake_name
from collector.spool import source_states
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse.tables import OTHER
from tests.odd_names import HELD, REFUSED

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000
NOON = 1_728_000_000 * S
METRIC = catalogue.load().metrics["kafka.client.produce.throttle_time"]
PATTERN = "kafka.server:type=Produce,*"


def fake_quote(name: str) -> str:
    """What javax.management.ObjectName.quote makes of it."""
    for character in '\\"*?':
        name = name.replace(character, f"\\{character}")
    return '"' + name.replace("\n", "\\n") + '"'


def client(name: str) -> Series:
    found = series_of(METRIC, PATTERN, f"kafka.server:type=Produce,client-id={fake_quote(name)}")
    assert found is not None
    return found


def user(name: str) -> Series:
    bean = f"kafka.server:type=Produce,user={quote(name, safe='', errors='surrogatepass')}"
    found = series_of(METRIC, PATTERN, bean)
    assert found is not None
    return found


@pytest.mark.parametrize("name", HELD)
def test_what_unicode_can_write_is_kept_as_it_is(name: str) -> None:
    assert client(name) == Series(METRIC.name, client_id=name)
    assert user(name) == Series(METRIC.name, user=name)
    assert lake_name(name) is name


def test_what_is_refused_gets_a_stand_in_that_can_be_written_and_told_apart() -> None:
    stand_ins = {lake_name(name) for name in REFUSED}
    assert len(stand_ins) == len(REFUSED)
    for stand_in in stand_ins:
        assert stand_in.startswith(f"{OTHER} ")
        assert stand_in.isascii()
        assert lake_name(stand_in) != stand_in  # or a client could pass itself off as another


@pytest.mark.parametrize("partition", ["", "-1", "1_0", "٣", " 1", "1.0", "x", "9" * 30])
def test_a_partition_that_is_no_number_is_refused(partition: str) -> None:
    metric = catalogue.load().metrics["kafka.partition.under_min_isr"]
    name = f"kafka.cluster:type=Partition,name=UnderMinIsr,topic=t,partition={partition}"
    found = series_of(metric, metric.patterns[0], name)
    assert found is not None
    (reading,), refused = capped((Reading("m", "gauge", frozenset({found})),), 10)
    assert (refused, reading.zeros) == (1, {Series(metric.name, topic=OTHER)})


def test_a_user_that_is_not_utf_8_is_refused() -> None:
    for raw in ("%ff", "%ed%a0%80"):
        found = series_of(METRIC, PATTERN, f"kafka.server:type=Produce,user={raw}")
        assert found is not None
        assert (found.user or "").startswith(OTHER)


def test_odd_labels_of_a_users_own_beans_are_refused_too() -> None:
    metric = Metric(name="own.rate", unit="1", description="", object="d:a=*", labels={"a": "x"})
    found = series_of(metric, "d:a=*", "d:a=" + "y" * 2000)
    assert found is not None
    assert capped((Reading("own.rate", "gauge", frozenset({found})),), 10)[1] == 1


def test_stand_ins_are_folded_and_counted_and_a_quiet_scrape_stays_the_same() -> None:
    refused = [client(name) for name in REFUSED]
    kept = [client(name) for name in HELD]
    zeros = frozenset([*refused[:2], *kept[:5]])
    values: dict[Series, float | None] = dict.fromkeys(refused[2:4], 1.0)
    values |= {refused[4]: None, kept[6]: 2.0}
    other = Series(METRIC.name, client_id=OTHER)
    (reading,), dropped = capped((Reading(METRIC.name, "gauge", zeros, values),), 100)
    assert dropped == 5
    assert reading.zeros == frozenset(kept[:5])
    assert reading.values == {other: 2.0, kept[6]: 2.0}
    (quiet,), dropped = capped((Reading(METRIC.name, "gauge", zeros),), 100)
    assert (dropped, quiet.zeros) == (2, frozenset([*kept[:5], other]))
    assert capped((Reading(METRIC.name, "gauge", zeros),), 100)[0][0].zeros is quiet.zeros


def test_beyond_the_cap_stand_ins_and_excess_are_one_and_counted_once() -> None:
    values: dict[Series, float | None] = {client(name): 1.0 for name in (*HELD, *REFUSED)}
    (reading,), dropped = capped((Reading(METRIC.name, "gauge", frozenset(), values),), 3)
    assert dropped == len(HELD) - 3 + len(REFUSED)
    assert len(reading.values) == 4
    assert reading.values[Series(METRIC.name, client_id=OTHER)] == dropped


@pytest.mark.parametrize(
    "text", ['"', "\\", '\\"', '="', '"\\', 'a=",', "=", ",", "a", '="\\",', "%"]
)
@pytest.mark.parametrize("begin", ["", "c=", 'c="', 'c="x"'])
def test_hostile_names_take_time_in_proportion_to_their_length(begin: str, text: str) -> None:
    # Eight times the longest of Kafka's names: what grows with the square takes many seconds.
    name = begin + text * ((1 << 18) // len(text))
    started = time.process_time()
    keys_of(f"d:{name}")
    series_of(METRIC, PATTERN, f"kafka.server:type=Produce,{name}")
    assert time.process_time() - started < 1


@pytest.mark.parametrize("name", REFUSED)
def test_groups_and_quotas_of_the_admin_api_are_refused_too(name: str) -> None:
    partition = Partition("t", 0)
    rules, committed = GroupRules(), {name: {partition: 7}}
    (commit,) = commits_in([partition], committed, {}, rules).items()
    assert commit == (Commit(lake_name(name), "t", 0), 7)
    limits = {QuotaEntity(name, name, ""): {"producer_byte_rate": 1.0}}
    (series,) = quota_limits(limits)["kafka.quota.produce.byte_rate"]
    assert (series.user, series.client_id) == (lake_name(name), lake_name(name))


@pytest.mark.parametrize("name", REFUSED)
def test_who_answers_with_such_a_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError, match="is not a valid name of a cluster"):
        Expected("broker").check("x", Identity(name, "1", None, 0))
    with pytest.raises(IdentityError, match="is not a valid name of a node"):
        Expected("broker").check("x", Identity("c", name, None, 0))
    with pytest.raises(IdentityError, match="is not a valid name of a version"):
        Expected("broker").check("x", Identity("c", "1", name, 0))


class FakeGarbler:
    """Fails with a message that quotes what cannot be written."""

    def identify(self) -> Identity:
        raise SourceError("bean half\ud83d\nis no number")


def test_an_error_that_quotes_such_a_name_is_one_line_that_can_be_kept() -> None:
    family = catalogue.load().family("quotas")
    scrape = Scraper(FakeGarbler(), SystemClock()).attempt(family, 10 * S)  # type: ignore[arg-type]
    assert scrape.error == "bean half\\ud83d is no number"
    assert source_states.entry_of(scrape, Encoder(300 * S))


class FakeOddBroker:
    """Stands for a broker whose clients have all these names; half of them idle."""

    def __init__(self) -> None:
        self.names = [*HELD, *REFUSED]
        clients = [client(name) for name in self.names]
        users = [user(name) for name in self.names]
        values = {series: float(number) for number, series in enumerate((*clients, *users), 1)}
        idle = frozenset(one._replace(metric="idle") for one in (*clients, *users))
        self.readings = (
            Reading(METRIC.name, "gauge", frozenset(), values),
            Reading("idle", "gauge", idle, {}),
        )

    def scrape(self, at_us: int) -> Scrape:
        kept, dropped = capped(self.readings, 1000)
        answer = Answer(kept, sum(len(one.values) + len(one.zeros) for one in kept), dropped)
        identity = Identity("c", "1", "4.3.1", 1)
        return Scrape("quotas", at_us, at_us, at_us + 1, 10 * S, "ok", identity, answer)


def test_names_come_back_from_delta_bit_for_bit_or_are_counted(tmp_path: Path) -> None:
    broker, lake = FakeOddBroker(), tmp_path / "lake"
    with Spool(tmp_path / "spool.db", 1 << 26) as spool:
        for second in (0, 10, 20):
            # A recorder each time: what is on disk must give all names back.
            recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), 300 * S)
            recorder.record(broker.scrape(NOON + second * S))
        recorder.flush(NOON + 25 * S)
        delivery = Delivery(str(lake), dict, spool)
        while delivery.deliver_next():
            pass
    told_clients = {*HELD, OTHER}
    runs = _rows(lake, "runs", "metric, client_id, user, value, members")
    clients = {row[1]: row[3] for row in runs if row[0] == METRIC.name and row[2] is None}
    users = {row[2] for row in runs if row[0] == METRIC.name and row[2] is not None}
    assert clients.keys() == told_clients
    assert users == {*HELD}
    for number, name in enumerate(HELD, 1):
        assert clients[name] == number
    (members,) = _rows(lake, "members", "clients")
    idle = {(one["user"], one["client_id"]) for one in members[0]}
    assert idle == {*((None, name) for name in told_clients), *((name, None) for name in HELD)}
    assert [row[0] for row in _rows(lake, "scrapes", "dropped_series")] == [4 * len(REFUSED)] * 3


def _rows(lake: Path, table: str, columns: str) -> list[tuple[object, ...]]:
    files = DeltaTable(f"{lake}/bronze/{table}").file_uris()
    return duckdb.read_parquet(files).project(columns).fetchall()
