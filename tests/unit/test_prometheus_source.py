"""An exporter that answers oddly is refused in one line; what it shows is read as JMX gives it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.errors import ConfigError, IdentityError, SourceError, SourceTimeoutError
from collector.model import Answer, Series, SystemClock
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Prometheus
from tests.hostile_http import HostileHttp, Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.catalogue import Family

MIN_ISR: Final = catalogue.load().family("min_isr")
TEXT: Final = "Content-Type: text/plain; version=0.0.4; charset=utf-8"
STARTED: Final = "java_lang_Runtime_StartTime 1.7E12\n"
INFO: Final = 'kafka_server_app_info_StartTimeMs{id="1"} 1.700000001E12\n'
LED: Final = (
    'kafka_cluster_Partition_Value{name="InSyncReplicasCount",partition="0",topic="orders"} 2.0\n'
)
UNDER: Final = 'kafka_cluster_Partition_Value{name="UnderMinIsr",partition="0",topic="orders"} '
BROKER: Final = Expected("broker", "1", "c")
ONE_METRIC: Final = msgspec.structs.replace(MIN_ISR, metrics=MIN_ISR.metrics[:1])


def page(text: str, kind: str = TEXT, status: str = "200 OK") -> Callable[[Request], None]:
    return lambda request: request.answer(text.encode(), status, kind)


def read(text: str, family: Family = ONE_METRIC, **section: object) -> Answer:
    with HostileHttp(page(text)) as fake, closing(source(fake.url, **section)) as one:
        return one.read(family)


def source(url: str, expected: Expected = BROKER, **section: object) -> PrometheusSource:
    return PrometheusSource(expected, settings(url, **section))


def settings(url: str, **section: object) -> Prometheus:
    made = msgspec.convert({"url": url, "timeout": "60s"}, Prometheus, dec_hook=_duration)
    return msgspec.structs.replace(made, **section)


def _duration(kind: type, text: object) -> object:
    return kind(text)


def test_a_page_is_read_as_its_beans() -> None:
    answer = read(f"# HELP x y\n{STARTED}{INFO}{LED}{UNDER}1.0\n")
    assert answer.readings[0].values == {Series(ONE_METRIC.metrics[0].name, "orders", 0): 1.0}


def test_not_a_number_is_observed_and_idle() -> None:
    answer = read(f"{STARTED}{LED}{UNDER}NaN\n")
    assert list(answer.readings[0].values.values()) == [None]


def test_staleness_widens_the_bounds() -> None:
    for text, staleness_us in (("0s", 0), ("30s", 30_000_000)):
        began = time.monotonic()
        answer = read(f"{STARTED}{LED}{UNDER}1.0\n", staleness=Duration(text))
        took_us = (time.monotonic() - began) * 1e6
        assert staleness_us <= answer.listed_us <= staleness_us + took_us


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page("<html>no</html>\n", "Content-Type: text/html"), "the answer is 'text/html'"),
        (page("", status="503 Busy"), "status 503"),
        (page(f"{STARTED}{LED}{UNDER}1.0"), "ends within a line"),
        (page(f"{STARTED}{LED}{UNDER}one\n"), "not Prometheus's text"),
        (page(STARTED + UNDER.rstrip("} ") + "\n"), "not Prometheus's text"),
        (page(f"{STARTED}{LED}{UNDER}+Inf\n"), "is inf, not a number"),
        (page(f"{STARTED}{LED}{UNDER}1.0\n{UNDER}0.0\n"), "two samples of"),
        (page(f"{STARTED}jmx_scrape_error 1.0\n"), "could not read the JVM's MBeans"),
        (
            lambda request: request.answer(
                STARTED.encode() + b'kafka_server_app_info_StartTimeMs{id="\xff"} 1\n',
                "200 OK",
                TEXT,
            ),
            "not UTF-8",
        ),
        (page(LED), "the start time of the JVM is missing"),
        (page(f"process_start_time_seconds 1.7E9\n{LED}"), "the start time of the JVM is missing"),
        (lambda request: request.stream(iter([b"x" * 65_536] * 2_000)), "longer than 64 MiB"),
    ],
)
def test_an_odd_answer_is_refused_in_one_line(answer: Callable[[Request], None], why: str) -> None:
    with (
        HostileHttp(answer) as fake,
        closing(source(fake.url, timeout=Duration("20s"))) as one,
        pytest.raises(SourceError, match=why) as refused,
    ):
        one.read(ONE_METRIC)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_one_that_hangs_costs_no_more_than_the_timeout() -> None:
    def hang(request: Request) -> None:
        request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        request.drip(b"#" * 200)

    with (
        HostileHttp(hang) as fake,
        closing(source(fake.url, timeout=Duration("500ms"))) as one,
        pytest.raises(SourceTimeoutError, match=r"no answer within 0\.5 s"),
    ):
        one.read(ONE_METRIC)


def test_another_node_is_refused_where_the_exporter_shows_it() -> None:
    with (
        HostileHttp(page(STARTED + INFO)) as fake,
        closing(source(fake.url, Expected("broker", "2", "c"))) as one,
        pytest.raises(IdentityError, match="node 1 responds instead of 2"),
    ):
        one.identify()


def test_an_agent_in_the_jvm_gives_its_start_by_the_process() -> None:
    build = 'jmx_exporter_build_info{name="jmx_prometheus_javaagent",version="1.0.1"} 1\n'
    text = f"{build}process_start_time_seconds 1.700000000123E9\n"
    with HostileHttp(page(text)) as fake, closing(source(fake.url)) as one:
        identity = one.identify()
    assert (identity.node, identity.started_us) == ("1", 1_700_000_000_123_000)


def test_what_the_rules_hide_is_unknown_and_never_zero(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("rules: [{pattern: 'kafka.server<.*'}]")
    with pytest.raises(SourceError, match=r"rules hide kafka\.partition\.under_min_isr"):
        read(f"{STARTED}{LED}{UNDER}1.0\n{INFO}", rules_file=rules)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"allowlist": ("kafka_.*",)}, "allowlist: applies only to exporter: strimzi"),
        (
            {"exporter": "strimzi", "rules_file": "a.yml"},
            "rules_file: applies only to exporter: jmx_",
        ),
        (
            {"exporter": "strimzi", "allowlist": ("kafka_(",)},
            "allowlist: missing \\), unterminated",
        ),
    ],
)
def test_a_setting_of_the_other_exporter_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=rf"source\.prometheus\.{says}"):
        settings("http://127.0.0.1:1/metrics", **changes).check("source.prometheus", "c")


def test_an_answer_that_the_exporter_repeats_is_not_used() -> None:
    texts = [f"{STARTED}{LED}{UNDER}1.0\njmx_scrape_timeout_total {late}.0\n" for late in (0, 1, 1)]
    pages = iter(texts)
    with (
        HostileHttp(lambda request: request.answer(next(pages).encode(), "200 OK", TEXT)) as fake,
        closing(source(fake.url)) as one,
    ):
        one._fetch([])
        one._shared_until = 0
        with pytest.raises(SourceError, match="the exporter returned an earlier page"):
            one._fetch([])
        one._shared_until = 0
        one._fetch([])


COUNTS: Final = "".join(
    f'kafka_server_ReplicaManager_Value{{name="{name}"}} {value}\n'
    for name, value in (("UnderMinIsrPartitionCount", 1), ("LeaderCount", 1))
)
FITTING: Final = f"{STARTED}{INFO}{LED}{UNDER}1.0\n{COUNTS}"


@pytest.mark.edge(5)
@pytest.mark.parametrize(
    ("before", "after", "label"),
    [
        ('name="UnderMinIsr",', 'name="UnderMinIsr",env="prod",', "env"),
        ('name="InSyncReplicasCount",', 'name="InSyncReplicasCount",team="pay",', "team"),
        ('topic="orders"} 1.0', 'kafka_topic="orders"} 1.0', "kafka_topic"),
        ('topic="orders"} 1.0', 'topic="orders",instance="b-1",job="kafka"} 1.0', "instance"),
        ('partition="0",topic="orders"} 1.0', 'shard="0",topic="orders"} 1.0', "shard"),
    ],
)
def test_a_label_that_no_rule_gives_is_named(before: str, after: str, label: str) -> None:
    assert before in FITTING
    with pytest.raises(SourceError, match=f"label {label} of kafka_cluster_Partition_Value is not"):
        read(FITTING.replace(before, after))


@pytest.mark.parametrize(
    "sibling",
    [
        'kafka_cluster_Partition_Value{name="UnderMinIsr",topic="orders"} 4.0',
        'kafka_cluster_Partition_Value{name="UnderMinIsr",partition="0",topic="x",version="2"} 4.0',
        'kafka_cluster_Partition_Value{env="prod",name="ReplicasCount",partition="0"} 4.0',
    ],
    ids=["a sum", "a bean with a key more", "another bean"],
)
def test_a_sample_of_another_bean_is_left_out(sibling: str) -> None:
    answer = read(f"{FITTING}{sibling}\n")
    assert answer.readings[0].values == {Series(ONE_METRIC.metrics[0].name, "orders", 0): 1.0}


def test_a_label_that_a_rule_names_is_the_exporters(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("rules: [{pattern: 'x<a=(.*)>', name: y, labels: {shop: $1}}, {pattern: .*}]")
    other = 'kafka_cluster_Partition_Value{name="UnderMinIsr",partition="1",shop="eu"} 4.0\n'
    assert len(read(FITTING + other, rules_file=rules).readings[0].values) == 1


@pytest.mark.edge(4)
@pytest.mark.parametrize(
    "rules",
    [
        'excludeObjectNames: ["kafka.cluster:type=Partition,name=InSyncReplicasCount,*"]',
        'blacklistObjectNames: ["kafka.cluster:type=Partition,name=InSync*,*"]',
        'includeObjectNames: ["kafka.cluster:name=UnderMinIsr,*", "kafka.server:*"]',
        "rules: [{pattern: 'java.lang<.*'}, {pattern: 'kafka.cluster<.*name=UnderMinIsr.*'}]",
        "rules: [{pattern: '.*InSyncReplicasCount.*', name: isr}, {pattern: '.*'}]",
    ],
    ids=["excluded", "blacklisted", "not included", "no rule", "all under one name"],
)
def test_hidden_in_sync_replicas_are_named(rules: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules)
    with pytest.raises(SourceError, match=r"rules hide kafka\.cluster:.*InSyncReplicasCount"):
        read(FITTING, rules_file=tmp_path / "rules.yml")


@pytest.mark.edge(4)
def test_strimzis_allowlist_without_in_sync_is_named() -> None:
    allowed = ("kafka_cluster_partition_under.*", "kafka_server.*")
    with pytest.raises(SourceError, match=r"rules hide kafka\.cluster:.*InSyncReplicasCount"):
        read(
            "process_start_time_seconds 1.7E9\nkafka_server_x 1\n",
            exporter="strimzi", allowlist=allowed,
        )  # fmt: skip


@pytest.mark.edge(5)
@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"topic=([a-zA-Z_-]+), partition=(\\d+)><>", "topic=jmxlake"),
        (r"topic=(\\w+), partition=(\\d+)><>", "topic=jmx.lake"),
        (r"topic=([\\w.]+), partition=(\\d+)><>", "topic=jmx-lake"),
        (r"topic=([a-z0-9.-]+), partition=(\\d+)><>", "topic=JMXLAKE"),
        (r"topic=([a-zA-Z].*), partition=(\\d+)><>", "topic=__jmx"),
        (r"topic=(.*[a-z].*), partition=(\\d+)><>", "topic=JMXLAKE"),
        (r"topic=(.+), partition=(\\d{2,})><>", "partition=5"),
        (r"topic=(.+), partition=(\\d{6,})><>", "partition=5"),
    ],
)
@pytest.mark.parametrize("otherwise", [", {pattern: .*}", ""], ids=["then all", "alone"])
def test_rules_that_depend_on_a_name_are_refused(
    pattern: str, name: str, otherwise: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.yml").write_text(
        "rules: [{pattern: 'kafka.server<.*'}, "
        f'{{pattern: "kafka.cluster<type=Partition, name=(\\\\w+), {pattern}Value",'
        ' name: "part_$1", labels: {topic: "$2", partition: "$3"}}'
        f"{otherwise}]"
    )
    why = f"treat {name} of kafka.partition.under_min_isr differently|rules hide"
    with pytest.raises(SourceError, match=why):
        read(FITTING, rules_file=tmp_path / "rules.yml")


@pytest.mark.edge(5)
@pytest.mark.parametrize("age_seconds", [600, 3_600, 60_000_000])
def test_an_old_stamp_of_a_sample_widens_the_answer(age_seconds: int) -> None:
    stamp = round((time.time() - age_seconds) * 1000)
    answer = read(FITTING.replace("} 1.0\n", f"}} 1.0 {stamp}\n"))
    assert answer.listed_us >= age_seconds * 1_000_000 - 1


@pytest.mark.edge(5)
@pytest.mark.parametrize("stamp", ["1700000000000", "0", "1"])
def test_a_stamp_older_than_the_interval_is_an_error(stamp: str) -> None:
    with (
        HostileHttp(page(FITTING.replace("} 1.0\n", f"}} 1.0 {stamp}\n"))) as fake,
        closing(source(fake.url)) as one,
    ):
        scrape = Scraper(one, SystemClock()).attempt(ONE_METRIC, 10_000_000)
    assert (scrape.outcome, scrape.answer) == ("timeout", None)
    assert scrape.error is not None
    assert "old, which is longer than the interval" in scrape.error


KINDS: Final = {"text": TEXT, "open": "Content-Type: application/openmetrics-text; version=1.0.0"}
CLOSE: Final = "Connection: close"


def unframed(text: str, kind: str, version: str = "1.1") -> Callable[[Request], None]:
    def answer(request: Request) -> None:
        request.send(f"HTTP/{version} 200 OK\r\n{kind}\r\n{CLOSE}\r\n\r\n{text}".encode())
        request.close()

    return answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (unframed(FITTING, TEXT), "neither a length nor chunks"),
        (unframed(FITTING, TEXT, "1.0"), "neither a length nor chunks"),
        (unframed(f"{STARTED}{INFO}", TEXT), "neither a length nor chunks"),
        (unframed("", TEXT), "neither a length nor chunks"),
        (unframed(FITTING[:-3], TEXT), "ends within a line"),
        (unframed(FITTING, KINDS["open"]), "ends without # EOF"),
        (page(FITTING, KINDS["open"]), "ends without # EOF"),
        (page(FITTING + "# EOF\n# x\n", KINDS["open"]), "ends without # EOF"),
    ],
)
def test_page_whose_end_is_unknown_is_refused(answer: Callable[[Request], None], why: str) -> None:
    with (
        HostileHttp(answer) as fake,
        closing(source(fake.url)) as one,
        pytest.raises(SourceError, match=why),
    ):
        one.read(ONE_METRIC)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("way", [page, unframed], ids=["length", "close"])
def test_page_with_an_eof_mark_is_whole(way: Any, kind: str) -> None:
    with HostileHttp(way(FITTING + "# EOF\n", kind)) as fake, closing(source(fake.url)) as one:
        assert list(one.read(ONE_METRIC).readings[0].values.values()) == [1.0]


def test_stamps_of_openmetrics_are_seconds() -> None:
    text = FITTING.replace("} 1.0\n", f"}} 1.0 {time.time() - 600}\n") + "# EOF\n"
    with HostileHttp(page(text, KINDS["open"])) as fake, closing(source(fake.url)) as one:
        assert 599_000_000 <= one.read(ONE_METRIC).listed_us <= 660_000_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kminion_kafka_broker_info{a=\"b\"} 1\nprocess_start_time_seconds 1.7e9\n",
         r"starts with 'kminion_kafka_broker_info', like the page of KMinion; .* jmx_exp"),
        ("process_start_time_seconds 1.7e9\nnode_load1 0.3\n", r"'node_load1', .* node_exporter"),
        ("# HELP\nconfluent_kafka_server_received_bytes{} 1\n", "Confluent Cloud's export"),
        ("otelcol_process_uptime 1\n", "OpenTelemetry"),
        ("target_info{x=\"y\"} 1\n", "OpenTelemetry"),
        ("go_threads 7\nkafka_brokers 3\nkafka_consumergroup_lag 1\n", "kafka_exporter"),
        ("windows_cpu_time_total 1\n", "windows_exporter"),
        ("container_cpu_usage_seconds_total 1\n", "cAdvisor"),
        ("go_threads 7\nprocess_start_time_seconds 1.7e9\n", r"starts with 'go_threads'; check"),
        ("<html><body>login</body></html>\n", r"starts with '<html><body>login"),
        ("", "the page is empty"),
        ("\x1b[31m\u202e" + "y" * 999 + "\n", r"starts with '\\x1b\[31m\\u202ey{20,60}'; check"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("exporter", ["jmx_exporter", "strimzi"])
def test_page_of_another_exporter_is_named(text: str, told: str, exporter: str) -> None:
    with pytest.raises(
        SourceError, match=told if exporter == "jmx_exporter" else "Strimzi's .*reporter$|empty"
    ) as refused:
        read(text, exporter=exporter)
    assert len(str(refused.value)) < 300
    assert str(refused.value).isascii()


@pytest.mark.parametrize("own", ["jmx_scrape_error 0\n", "kafka_log_size 1\njava_lang_x 1\n"])
def test_page_that_hides_its_start_is_jmx_exporters(own: str) -> None:
    with pytest.raises(IdentityError, match="the start time of the JVM is missing"):
        read(own)


@pytest.mark.parametrize(
    ("status", "header", "told"),
    [
        ("301 Moved", "Location: https://me:secret@b.example/x?token=secret#secret",
         "status 301: redirects are not followed; .* redirects to 'https://b.example/x'$"),
        ("302 Found", "Location: /elsewhere?token=secret", r"to 'http://127.0.0.1:\d+/elsewhere'"),
        ("307 Moved", "Location: https://b.example/" + "y" * 9999, "to 'https://b.example/y{99}"),
        ("308 Moved", "Location: http://[b.example", "to 'http://%5bb.example'"),
        ("308 Moved", "Location: http://b.example:secret/", "to an address that is not a URL"),
        ("302 Found", "Location: //b.example/%1b[31m", r"to .http://b.example/%1b\[31m.$"),
        ("304 Not Modified", "X: y", "status 304: jmx_exporter does not use this status"),
        ("404 No", "X: y", "status 404: the path does not exist"),
        ("405 No", "X: y", "status 405: GET is not allowed"),
        ("407 No", "X: y", "status 407: a proxy requires a separate login"),
        ("429 No", "X: y", "status 429: the server limits requests"),
        ("500 No", "X: y", "status 500: the server failed; check its log"),
        ("502 No", "X: y", "status 502: a proxy received an invalid response"),
        ("200 OK", "Content-Encoding: gzip", r"is compressed \('gzip'\)"),
    ],
)  # fmt: skip
def test_status_says_its_meaning_and_the_way_out(status: str, header: str, told: str) -> None:
    with (
        HostileHttp(page(FITTING, f"{TEXT}\r\n{header}", status)) as fake,
        closing(source(fake.url)) as one,
        pytest.raises(SourceError, match=told) as refused,
    ):
        one.identify()
    assert "secret" not in str(refused.value)
    assert len(str(refused.value)) < 300
