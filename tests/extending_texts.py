"""What a contributor writes for each addition of CONTRIBUTING.md: files, and lines of files."""

from __future__ import annotations

from pprint import pformat
from typing import Final, NamedTuple


class Line(NamedTuple):
    """Lines of a file that is there.

    Attributes:
        file: The file.
        text: The new lines.
        after: What stands before them, once in the file.
    """

    file: str
    text: str
    after: str


class Addition(NamedTuple):
    """An addition, and how many files it may take.

    Attributes:
        name: What it is, as a figure's name has it.
        most: The bar.
        files: New files, with their text.
        lines: New lines of files that are there.
    """

    name: str
    most: int
    files: tuple[tuple[str, str], ...] = ()
    lines: tuple[Line, ...] = ()


_FAMILY: Final = """\
family: bundled_cache
via: jmx
cadence_seconds: 60
roles: [broker]
enabled: false
metrics:
  bundled.cache.misses:
    object: kafka.server:type=BrokerTopicMetrics,name=CacheMissesPerSec,topic=*
    labels: {topic: topic}
    kind: counter
    absent: zero
    needs: traffic
    unit: "1"
    description: Entries that the cache of a topic had to load.
"""

_METRIC: Final = """\
  jvm.classes:
    object: java.lang:type=ClassLoading
    attribute: LoadedClassCount
    unit: "{class}"
    description: Loaded classes.
"""

_SQL: Final = """\
-- For how long each source reported each metric.
INSERT INTO out_reported BY NAME
SELECT w, metric, source, sum((e - s) * series)::BIGINT AS reported_us FROM usable GROUP BY ALL;
"""

_TABLE: Final = """
REPORTED: Final = _gold(
    "reported",
    "For how long each source reported each metric",
    _METRIC,
    SOURCE,
    required("reported_us", "bigint", "microseconds, summed over series", "sum"),
)
"""

_DIMENSION: Final = """
FAMILIES: Final = of_gold(
    "families",
    "Number of metrics of each family in the shipped catalogue",
    required("family", "string", "family of the catalogue"),
    required("metrics", "int", "number of its metrics"),
)
"""

_DIMENSION_ROWS: Final = '''

def families() -> list[Row]:
    """Return the rows of gold/families."""
    names = [row["family"] for row in shipped_rows()]
    return [{"family": one, "metrics": names.count(one)} for one in sorted({*names})]
'''

_RECORD: Final = '''class CopyingBroker(NamedTuple):
    """Upload tasks of a broker."""

    source: Annotated[str, SOURCE]
    tasks_idle_min: Annotated[Known, Means(
        "minimum idle share of its upload tasks, 0 to 1",
        Min("kafka.broker.remote_log_manager.tasks_idle"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


'''

_TABLE_SPEC: Final = """
COPYING: Final = TableSpec(
    rows=Rows(remote_storage.CopyingBroker, "remote_reads.copying"),
    caption="Upload tasks of brokers",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        Column.number("Upload tasks idle, min", "tasks_idle_min", display.share),
    ),
)
"""

_FACTS: Final = '''\
"""The section on who reported what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from lakehouse.report.facts.fields import SOURCE, Means, Question, Rows
from lakehouse.tables.gold import REPORTED

if TYPE_CHECKING:
    from lakehouse.report.facts.gold import Gold


class Metric(NamedTuple):
    """A metric of a source."""

    source: Annotated[str, SOURCE]
    metric: Annotated[str, Means("metric")]
    reported_us: Annotated[int, Means("time in which the source reported it, microseconds")]


class Reported(NamedTuple):
    """The section."""

    metrics: Annotated[list[Metric], Means("metrics of each source")]


def reported(gold: Gold) -> Reported:
    """Return the time in which each source reported each metric."""
    rows = gold.sums(REPORTED)
    return Reported([Metric(row["source"], row["metric"], row["reported_us"]) for row in rows])


QUESTION: Final = Question(
    name="reported",
    section="reported",
    read="kafka.partition.under_min_isr",
    noun="metric",
    names=("source", "metric"),
    fact="reported.metrics",
    bad=(Rows(Metric, "reported.metrics", ("reported_us",)),),
)
'''

_SECTION: Final = '''\
"""Reported metrics: the time in which sources reported them."""

from lakehouse.report.facts.sections.reported import QUESTION
from lakehouse.report.figures import length
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Column, TableSpec, most

METRICS = TableSpec(
    rows=QUESTION.bad[0],
    caption="Metrics",
    noun="metric",
    columns=(
        Column.name("Metric", "source", "metric"),
        Column.number("Reported", "reported_us", length),
    ),
    worst=most("reported_us"),
)

SECTION = section(
    "reported",
    "Reported metrics",
    counted(QUESTION, Claim(METRICS, lambda row: length(row["reported_us"]), "reported", "most")),
)
'''

_OBJECTIVE: Final = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: acme
  displayName: Acme upload lag
spec:
  description: A topic is good while its upload lag is 0 bytes.
  service: kafka
  indicator:
    metadata:
      name: acme
    spec:
      thresholdMetric:
        metricSource:
          type: jmxlake
          spec:
            level: topic
            metric: kafka.topic.remote_copy_lag.bytes
            where:
              kafka.topic.remote_storage_enabled: 1
  timeWindow:
    - duration: 1w
      isRolling: false
      calendar:
        startTime: "2026-01-05 00:00:00"
        timeZone: UTC
  budgetingMethod: GoodSeconds
  objectives:
    - op: lte
      value: 0
      target: 0.99
"""

_SOURCE: Final = '''\
"""MBeans of a JVM from a JSON file that another program writes."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec

from collector.errors import SourceError
from collector.settings import TIMEOUT, Duration
from collector.sources.base.beans import Answers, Question, keys_of
from collector.sources.base.identity import Expected
from collector.sources.base.mbean_source import SnapshotSource
from collector.sources.transports import JvmTransport


class Dump(JvmTransport, frozen=True):
    """A JSON file with the attributes of each MBean.

    Attributes:
        file: The file.
        timeout: Timeout of one read.
    """

    opens = "dump:DumpSource"

    file: Path
    timeout: Annotated[Duration, TIMEOUT] = Duration("5s")


class DumpSource(SnapshotSource):
    """A JVM whose MBeans are in a file.

    Args:
        expected: Its identity.
        settings: The file.
    """

    def __init__(self, expected: Expected, settings: Dump) -> None:
        super().__init__(f"dump {settings.file}", expected, settings.timeout.seconds)
        self._file = settings.file

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        try:
            beans = msgspec.json.decode(
                self._file.read_bytes(), type=dict[str, dict[str, int | float | str | None]]
            )
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceError(f"{self._where}: {error}; write the file again") from None
        return {
            asked: {
                name: values[asked.attribute]
                for name, values in beans.items()
                if asked.attribute in values and _fits(asked.pattern, name)
            }
            for asked in questions
        }


def _fits(pattern: str, name: str) -> bool:
    wanted, keys = keys_of(pattern), keys_of(name)
    has_keys = pattern.endswith(",*") or wanted.keys() == keys.keys()
    domains = (name.partition(":")[0], pattern.partition(":")[0])
    return has_keys and fnmatchcase(*domains) and all(
        fnmatchcase(keys.get(key, ""), value) for key, value in wanted.items()
    )
'''

DUMP: Final = {
    "java.lang:type=Runtime": {"StartTime": 1_000},
    "kafka.server:type=app-info,id=1": {"Version": "4.3.1"},
    "kafka.server:type=KafkaServer,name=ClusterId": {"Value": "c"},
    "kafka.server:type=ReplicaManager,name=LeaderCount": {"Value": 0},
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=Produce,error=NONE": {"Count": 7},
}
"""MBeans of a broker that answered 7 produce requests."""

_SOURCE_TEST: Final = '''\
"""A dump is read as any other JVM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.errors import SourceError
from collector.model import Series
from collector.sources.base.identity import Expected
from collector.sources.dump import Dump, DumpSource

if TYPE_CHECKING:
    from pathlib import Path

_BEANS = DUMPED


def test_dump_is_read(tmp_path: Path) -> None:
    (tmp_path / "beans.json").write_text(json.dumps(_BEANS), "utf-8")
    source = DumpSource(Expected("broker", "1"), Dump(tmp_path / "beans.json"))
    assert source.identify().cluster == "c"
    readings = source.read(catalogue.load().family("requests")).readings
    good = "kafka.broker.produce.answers_good"
    assert [one.values for one in readings if one.metric == good] == [{Series(good): 7}]


def test_missing_dump_is_one_line(tmp_path: Path) -> None:
    source = DumpSource(Expected("broker", "1"), Dump(tmp_path / "none"))
    with pytest.raises(SourceError, match="write the file again"):
        source.identify()
'''.replace("DUMPED", pformat(DUMP, width=100))

_SOURCES: Final = "collector/sources/source_settings.py"
_GOLD: Final = "lakehouse/tables/gold.py"
_REPORT: Final = "lakehouse/report/facts/report_record.py"
_REQUESTS: Final = "lakehouse/report/tables/clients.py"
_STORAGE: Final = "lakehouse/report/tables/storage.py"
_REMOTE: Final = "lakehouse/report/facts/sections/remote_storage.py"
_DIMENSIONS: Final = "lakehouse/rollup/dimensions.py"
_WITHOUT_HOURS: Final = "lakehouse/tables/gold_without_hours.py"

COMMANDS: Final = (
    ("-m", "docs.tools.definitions"),
    ("-m", "docs.tools.schemas"),
    ("-m", "pytest", "-q", "tests/integration/test_report_golden.py", "--golden"),
    ("-m", "tests.unit.test_page_golden"),
)
"""What CONTRIBUTING.md says to run after additions: they write files of the tree anew."""

ADDITIONS: Final = (
    Addition("family", 1, files=(("collector/catalogue/bundled_cache.yaml", _FAMILY),)),
    Addition(
        "metric", 1,
        lines=(
            Line(
                "collector/catalogue/jvm.yaml", _METRIC,
                "    description: Share of all processors, 0 to 1, that the process used lately.\n",
            ),
        ),
    ),
    Addition(
        "gold_table", 2,
        files=(("lakehouse/kernel/sql/tables/reported.sql", _SQL),),
        lines=(
            Line(
                _GOLD, _TABLE,
                '"""Reason in gold/rejected of hours of bronze that are lost: no rollup computes '
                'them."""\n',
            ),
            Line(_GOLD, "\n    REPORTED,", "\nHOURS: Final = ("),
        ),
    ),
    Addition(
        "dimension", 2,
        lines=(
            Line(
                _WITHOUT_HOURS, _DIMENSION,
                '    Column("tier", "string", "tier of that entry; null: not in the entry"),\n)\n',
            ),
            Line(_WITHOUT_HOURS, ", FAMILIES", "DIMENSIONS: Final = (METRICS, OBJECTIVES, OWNERS"),
            Line(_DIMENSIONS, ", tables.FAMILIES", "in (tables.METRICS, tables.OBJECTIVES"),
            Line(
                _DIMENSIONS,
                "        tables.FAMILIES: families(),\n",
                "        tables.OBJECTIVES: versions(before[tables.OBJECTIVES], objectives, "
                "now_us()),\n",
            ),
            Line(_DIMENSIONS, _DIMENSION_ROWS, "    is_own: bool = False\n"),
        ),
    ),
    Addition(
        "table", 3,
        lines=(
            Line(_REMOTE, _RECORD, "    unknown_us: Annotated[int | None, UNKNOWN] = None\n\n\n"),
            Line(
                _REMOTE,
                '    copying: Annotated[list[CopyingBroker], Means("brokers with upload tasks")]\n',
                '    plugins: Annotated[list[Plugin], Means("brokers with Aiven\'s plugin")]\n',
            ),
            Line(
                _REMOTE,
                '        of_sources(CopyingBroker, brokers, '
                '"kafka.broker.remote_log_manager.tasks_idle", unread=away),\n',
                "        _plugins(brokers, away),\n",
            ),
            Line(_REMOTE, " CopyingBroker,", "ReadTopic, ReadingBroker, RemoteReadCounts, Plugin,"),
            Line(_STORAGE, _TABLE_SPEC, '    worst=most("bytes", "requests"),\n)\n'),
            Line(
                _STORAGE,
                "        more=(COPYING,),\n",
                '        Claim(READERS, _throttled, "throttled by a fetch quota", is_own=False),\n',
            ),
            Line(
                "lakehouse/report/csv_files.py",
                '    File("remote_reads_copying", "broker with upload tasks", '
                '"remote_reads.copying"),\n',
                '    File("remote_reads_plugins", "broker with Aiven\'s plugin", '
                '"remote_reads.plugins"),\n',
            ),
        ),
    ),
    Addition(
        "section", 3,
        files=(
            ("lakehouse/report/facts/sections/reported.py", _FACTS),
            ("lakehouse/report/tables/reported.py", _SECTION),
        ),
        lines=(
            Line(_REPORT, "    reported as reported_,\n", "    monitoring,\n"),
            Line(
                _REPORT,
                '    reported: Annotated[reported_.Reported, Means("reports")]\n',
                '    tiering: Annotated[remote_storage.Tiering, Means("use of remote storage")]\n',
            ),
            Line(_REPORT, " reported_.QUESTION,", "replication_.REPLICATION_QUESTION,"),
            Line(
                _REPORT,
                '    "reported": lambda it: reported_.reported(it.gold),\n',
                '    "remote_reads": lambda it: remote_storage.remote_reads(it.gold),\n',
            ),
        ),
    ),
    Addition(
        "column", 1,
        lines=(
            Line(
                _REQUESTS,
                '        Column.quantity("Rate, mean", "rate_mean"),\n',
                '        Column.peak("Wait, max", "throttle_ms_max", display.milliseconds),\n',
            ),
        ),
    ),
    Addition(
        "figure", 1,
        lines=(
            Line(
                "lakehouse/report/facts/sections/remote_storage.py",
                "    slowest_read_ms: Annotated[Known, Means(\n"
                '        "maximum of the mean duration of a read, milliseconds",\n'
                '        Max("kafka.broker.remote_log_reader.fetch_time.mean"))]  # fmt: skip\n',
                '        "mean duration of a read, milliseconds",\n'
                '        Mean("kafka.broker.remote_log_reader.fetch_time.mean", above_zero=True))]'
                "  # fmt: skip\n",
            ),
        ),
    ),
    Addition("objective", 1, files=(("lakehouse/slo/objectives/acme.yaml", _OBJECTIVE),)),
    Addition(
        "source", 4,
        files=(
            ("collector/sources/dump.py", _SOURCE),
            ("tests/unit/test_dump.py", _SOURCE_TEST),
        ),
        lines=(
            Line(
                _SOURCES,
                "from collector.sources.dump import Dump\n",
                "from collector.settings import RESTART, Section\n",
            ),
            Line(
                _SOURCES,
                "        dump: JSON file with its MBeans.\n",
                "        statistics: File with statistics of a client that uses librdkafka.\n",
            ),
            Line(
                _SOURCES,
                "    dump: Dump | None = None\n",
                "    statistics: Statistics | None = None\n",
            ),
            Line(
                "deploy/agent.yaml",
                "  # dump:               # a JSON file with the MBeans\n"
                "  #   file: /var/lib/kafka/beans.json\n"
                "  #   timeout: 5s\n",
                "  #   file: /var/log/billing/librdkafka.json\n",
            ),
        ),
    ),
)  # fmt: skip
"""In this order, each on those before it: the section reads the table of gold."""
