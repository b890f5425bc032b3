"""What jmxlake says of OpenSLO v1 files: the published examples, and files that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from lakehouse.cli.main import main
from lakehouse.core.yaml_nodes import Finding, MalformedError, documents, number, truth
from lakehouse.errors import ObjectiveError
from lakehouse.slo import report_calendar
from lakehouse.slo.openslo import objective_files, schema
from lakehouse.slo.openslo.objective_files import FileObject, read

if TYPE_CHECKING:
    from click.testing import Result

    from lakehouse.core.objective import Objective

EXAMPLES = Path(__file__).parents[1] / "openslo_examples"

MINE = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: mine
  labels: {team: [payments, core], tier: "1"}
spec:
  service: kafka
  indicator:
    metadata: {name: mine}
    spec:
      thresholdMetric:
        metricSource:
          type: jmxlake
          spec:
            level: topic
            metric: kafka.partition.unavailable
            match: {topic: ["orders-*", "!*-test"]}
  timeWindow:
    - duration: 28d
      isRolling: true
  budgetingMethod: Timeslices
  objectives:
    - op: lte
      value: 0
      targetPercent: 99.9
      timeSliceTarget: 0.95
      timeSliceWindow: 5
"""

EVENTS = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: reads}
spec:
  service: kafka
  indicatorRef: remote-reads
  budgetingMethod: Occurrences
  objectives:
    - {displayName: good, target: 0.99}
    - {displayName: very good, target: 0.999}
---
- apiVersion: openslo/v1
  kind: SLI
  metadata: {name: remote-reads}
  spec:
    ratioMetric:
      counter: true
      bad: {metricSource: {metricSourceRef: lake, spec: {level: topic, metric: a.errors}}}
      total: {metricSource: {metricSourceRef: lake, spec: {level: topic, metric: a.requests}}}
- apiVersion: openslo/v1
  kind: DataSource
  metadata: {name: lake}
  spec: {type: jmxlake}
"""


def found_in(tmp_path: Path, text: str) -> list[FileObject]:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return read([path])


def findings(objects: list[FileObject]) -> list[Finding]:
    return [finding for one in objects for finding in one.findings]


def objectives(objects: list[FileObject]) -> list[Objective]:
    return [objective for one in objects for objective in one.objectives]


def said(tmp_path: Path, text: str) -> list[tuple[int, int, str, str]]:
    """Line, column, kind and path of all but notes."""
    found = findings(found_in(tmp_path, text))
    return [(f.line, f.column, f.kind, f.path) for f in found if f.kind != "note"]


def changed(old: str, new: str, text: str = MINE) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["slo", *words])


_METRICS = "spec.indicator.spec.ratioMetric"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "occurences-slo.yaml",
            [
                (17, 17, "spec.indicator.spec.thresholdMetric.metricSource.type"),
                (23, 20, "spec.budgetingMethod"),
            ],
        ),
        (
            "ratio-timeslices.yaml",
            [
                (16, 9, _METRICS),
                (18, 19, f"{_METRICS}.good.metricSource.type"),
                (23, 19, f"{_METRICS}.total.metricSource.type"),
                (33, 24, "spec.objectives[0].timeSliceWindow"),
            ],
        ),
        (
            "timeslices-slo.yaml",
            [
                (16, 9, _METRICS),
                (18, 19, f"{_METRICS}.good.metricSource.type"),
                (23, 19, f"{_METRICS}.total.metricSource.type"),
                (27, 17, "spec.timeWindow[0].duration"),
                (38, 24, "spec.objectives[0].timeSliceWindow"),
                (42, 24, "spec.objectives[1].timeSliceWindow"),
            ],
        ),
        (
            "sdk_slos.yaml",
            [
                (23, 21, f"[0].{_METRICS}.good.metricSource.type"),
                (28, 21, f"[0].{_METRICS}.total.metricSource.type"),
                (43, 26, "[0].spec.objectives[0].timeSliceWindow"),
            ],
        ),
    ],
)
def test_a_published_slo_is_valid_and_what_cannot_be_done_has_its_place(
    name: str, wanted: list[tuple[int, int, str]]
):
    found = read([EXAMPLES / name])
    assert [one.outcome for one in found] == ["unsupported"]
    told = [(f.line, f.column, f.path) for f in findings(found) if f.kind == "unsupported"]
    assert told == wanted
    for one in (f for f in findings(found) if f.path and f.kind != "invalid"):
        text = (EXAMPLES / name).read_text("utf-8").splitlines()[one.line - 1]
        assert text[one.column - 1] not in " #", "the column is that of a word"


def test_every_published_object_is_valid():
    for path in sorted(EXAMPLES.glob("*.yaml")):
        found = read([path])
        assert found
        assert all(one.outcome != "invalid" for one in found), path.name


def test_published_objects_that_change_nothing_say_so():
    found = read([EXAMPLES / f"sdk_{kind}.yaml" for kind in ("slis", "services", "data_sources")])
    assert {one.outcome for one in found} == {"no effect"}
    assert len(found) == 8


def test_a_minute_is_no_month():
    (one,) = [f for f in findings(read([EXAMPLES / "timeslices-slo.yaml"])) if "duration" in f.path]
    assert "M is months" in one.message


def test_an_objective_has_all_that_its_file_says(tmp_path: Path):
    (one,) = objectives(found_in(tmp_path, MINE))
    assert (one.name, one.method, one.target) == ("mine", "Timeslices", 0.999)
    assert one.slices is not None
    assert (one.slices.length_us, one.slices.target) == (300_000_000, 0.95)
    assert (one.window.name, one.window.is_rolling) == ("28d", True)
    assert one.labels == {"team": ("payments", "core"), "tier": ("1",)}
    assert one.has({"team": "core", "tier": ""})
    assert not one.has({"team": "billing"})
    names = dict.fromkeys(("cluster", "user", "client_id", "group", "source"))
    assert one.matches({**names, "topic": "orders-eu"})
    assert not one.matches({**names, "topic": "orders-test"})
    assert not one.matches({**names, "topic": "payments"})
    assert one.unknown == "interval"


@pytest.mark.parametrize("policy", ["interval", "exclude", "good", "bad"])
def test_an_objective_says_how_unknown_time_counts(tmp_path: Path, policy: str):
    asked = MINE.replace("level: topic", f"level: topic\n            unknown: {policy}")
    (one,) = objectives(found_in(tmp_path, asked))
    assert one.unknown == policy


def test_references_are_followed_and_each_objective_is_one(tmp_path: Path):
    found = found_in(tmp_path, EVENTS)
    assert [one.name for one in objectives(found)] == ["reads.1", "reads.2"]
    first = objectives(found)[0]
    assert first.events is not None
    assert (first.method, first.events.counted, first.events.are_good, first.events.total) == (
        "Occurrences", "a.errors", False, "a.requests",
    )  # fmt: skip
    assert [one.outcome for one in found] == ["supported", "read", "no effect"]


def test_events_can_be_in_slices_and_not_in_seconds(tmp_path: Path):
    cut = "{displayName: good, target: 0.99, timeSliceTarget: 0.9, timeSliceWindow: 10m}"
    text = changed("{displayName: good, target: 0.99}", cut, EVENTS)
    text = changed("    - {displayName: very good, target: 0.999}\n", "", text)
    (one,) = objectives(found_in(tmp_path, changed("Occurrences", "Timeslices", text)))
    assert (one.method, one.slices is None, one.events is None) == ("Timeslices", False, False)
    assert said(tmp_path, changed("Occurrences", "GoodSeconds", text)) == [
        (7, 20, "unsupported", "spec.budgetingMethod")
    ]
    short = changed("10m", "1m", changed("Occurrences", "RatioTimeslices", text))
    ((line, _, kind, path),) = said(tmp_path, short)
    assert (line, kind, path) == (9, "unsupported", "spec.objectives[0].timeSliceWindow")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("openslo/v1", "openslo/v2", (1, 13, "invalid", "apiVersion")),
        ("kind: SLO", "kind: SLOO", (2, 7, "invalid", "kind")),
        ("name: mine\n  labels", "name: My_SLO\n  labels", (4, 9, "invalid", "metadata.name")),
        ("  service: kafka\n", "", (7, 3, "invalid", "spec")),
        ("28d", "28D", (19, 17, "invalid", "spec.timeWindow[0].duration")),
        ("28d", "1M", (19, 17, "unsupported", "spec.timeWindow[0].duration")),
        ("28d", "400d", (19, 17, "unsupported", "spec.timeWindow[0].duration")),
        ("isRolling: true", "isRolling: false", (19, 7, "invalid", "spec.timeWindow[0]")),
        ("Timeslices", "Seconds", (21, 20, "invalid", "spec.budgetingMethod")),
        ("Timeslices", "Occurrences", (21, 20, "unsupported", "spec.budgetingMethod")),
        ("op: lte", "op: gt", (23, 11, "unsupported", "spec.objectives[0].op")),
        ("op: lte", "op: less", (23, 11, "invalid", "spec.objectives[0].op")),
        ("value: 0", "value: -1", (24, 14, "unsupported", "spec.objectives[0].value")),
        ("value: 0", "value: .nan", (24, 14, "invalid", "spec.objectives[0].value")),
        ("value: 0", "value: 5", (24, 14, "unsupported", "spec.objectives[0].value")),
        ("99.9", "100", (25, 22, "invalid", "spec.objectives[0].targetPercent")),
        ("Percent: 99.9", ": 0", (25, 15, "unsupported", "spec.objectives[0].target")),
        ("0.95", "1.5", (26, 24, "invalid", "spec.objectives[0].timeSliceTarget")),
        ("      timeSliceTarget: 0.95\n", "", (23, 7, "invalid", "spec.objectives[0]")),
        ("timeSliceWindow: 5", "timeSliceWindow: 2d",
         (27, 24, "unsupported", "spec.objectives[0].timeSliceWindow")),
        ("timeSliceWindow: 5", "timeSliceWindo: 5",
         (27, 7, "unsupported", "spec.objectives[0].timeSliceWindo")),
        ("level: topic", "level: shelf",
         (15, 20, "unsupported",
          "spec.indicator.spec.thresholdMetric.metricSource.spec.level")),
        ("level: topic", "level: topic\n            unknown: maybe",
         (16, 22, "unsupported",
          "spec.indicator.spec.thresholdMetric.metricSource.spec.unknown")),
        ("match: {topic:", "match: {shelf:",
         (17, 21, "unsupported",
          "spec.indicator.spec.thresholdMetric.metricSource.spec.match.shelf")),
        ("op: lte", "{op: lte", (24, 12, "invalid", "")),
        ("      value: 0\n", "      value: 0\n      value: 1\n",
         (25, 7, "invalid", "spec.objectives[0].value")),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_line_and_column(
    tmp_path: Path, old: str, new: str, wanted: tuple[int, int, str, str]
):
    assert wanted in said(tmp_path, changed(old, new))
    with pytest.raises(ObjectiveError, match=r"mine\.yaml:\d+:\d+: ") as caught:
        objective_files.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_single_partitions_have_time_of_metrics_of_partitions_and_nothing_else(tmp_path: Path):
    text = changed("level: topic", "level: partition")
    assert said(tmp_path, text) == [(21, 20, "unsupported", "spec.budgetingMethod")]
    in_seconds = changed("Timeslices", "GoodSeconds", text)
    (one,) = objectives(found_in(tmp_path, in_seconds))
    assert (one.level, one.kind) == ("partition", "topic"), "gold tells of topics"
    lag = changed("kafka.partition.unavailable", "kafka.topic.remote_copy_lag.bytes", in_seconds)
    ((line, column, kind, path),) = said(tmp_path, lag)
    assert (line, column, kind) == (16, 21, "unsupported")
    assert path.endswith("metricSource.spec.metric")


def test_two_slos_of_one_name_are_told_apart_by_their_places(tmp_path: Path):
    (one,) = said(tmp_path, f"{MINE}---\n{MINE}")
    assert one == (32, 9, "unsupported", "metadata.name")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "&a [*a]",
        "a: &a [1]\n"
        + "\n".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}]" * 1 for n in range(50)),
        "[" * 5000,
        "x: " * 3,
        "a: &x [q, q, q, q, q, q, q, q, q]\n"
        + "\n".join(
            f"a{n}: &x{n} [{', '.join([f'*x{n - 1}' if n else '*x'] * 9)}]" for n in range(9)
        ),
        "\x00",
    ],
)
def test_yaml_that_would_never_end_ends(tmp_path: Path, text: str):
    found = found_in(tmp_path, text)
    assert {one.outcome for one in found} == {"invalid"}


def test_bytes_that_are_no_text_are_told(tmp_path: Path):
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    assert [one.outcome for one in read([tmp_path])] == ["invalid"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(MINE.splitlines()), max_size=30), _JSON)
def test_whatever_a_file_holds_it_is_told_and_not_raised(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], value: object
):
    place = tmp_path_factory.mktemp("any")
    for text in ("\n".join(lines), yaml.safe_dump(value), MINE + yaml.safe_dump({"spec": value})):
        found_in(place, text)


def test_values_are_those_of_yaml():
    text = "{a: 1_000, b: yes, c: ~, d: 12:30, e: .inf, f: [x, 0.5], g: 2022-01-01 12:00:00}"
    ((node, found),) = documents(text, "f")
    assert not found
    values = node.entries
    assert [number(values[key]) for key in "abcde"] == [1000.0, None, None, None, None]
    assert [number(one) for one in values["f"].items] == [None, 0.5]
    assert truth(values["b"])
    assert values["c"].is_null
    assert values["g"].text == "2022-01-01 12:00:00"


def _types(shape: object) -> list[str]:
    if isinstance(shape, dict):
        words = {"one of", "or reference"}
        return [name for key, value in shape.items() if key not in words for name in _types(value)]
    return _types(shape[0]) if isinstance(shape, list) else [str(shape)]


def test_every_type_of_the_schema_is_declared():
    """A name that is not declared would be taken for a choice of one."""
    file = yaml.safe_load(Path(schema.__file__).with_name("schema.yaml").read_text("utf-8"))
    declared = {*file["types"], *schema._SCALARS, *schema._NAMES, "burnrate"}
    used = set(_types(file))
    assert {name for name in used if " | " not in name and name[0] not in "[("} <= declared
    assert set(file["types"]) <= used | {"jmxlake source"}


def test_no_yaml_has_the_place_of_its_fault():
    with pytest.raises(MalformedError) as caught:
        documents("a: 1\nb: [1, 2\nc: 3\n", "f")
    assert caught.value.finding.line == 3


def test_check_says_by_its_exit_code_what_it_found(tmp_path: Path):
    assert run("check").exit_code == 0, "those that are shipped"
    assert run("check", str(EXAMPLES)).exit_code == 3
    (tmp_path / "a.yml").write_text(changed("kind: SLO", "kind: SLA"), "utf-8")
    told = run("check", str(tmp_path))
    assert told.exit_code == 1
    assert f"{tmp_path}/a.yml:2:7: invalid: kind: " in told.output
    nowhere = run("check", str(tmp_path / "nowhere.yaml"))
    assert nowhere.exit_code == 1
    assert "No such file" in nowhere.output
    (tmp_path / "empty").mkdir()
    assert run("check", str(tmp_path / "empty")).exit_code == 1


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        (
            "targetPercent: 99.9",
            "target: 99.9",
            "not a number of [0, 1); write targetPercent: 99.9",
        ),
        (
            "targetPercent: 99.9",
            "target: {{ .Values.target }}",
            "it is a template ({{ }}; render it",
        ),
        ("openslo/v1", "openslo/v1alpha", "v1 has a list under timeWindow with a duration"),
        ("Method: Timeslices", "Method: timeSlices", "did you mean 'Timeslices'?"),
        ("Method: Timeslices", "Method: Occurences", "did you mean 'Occurrences'?"),
        ("- duration: 28d", "- unit: Day\n      count: 28", "calendar; write duration: 28d"),
        ("- duration: 28d", "- unit: Fortnight", "calendar; write duration: 30d"),
        ("service: kafka", "servise: kafka", "did you mean 'service'?"),
        ("service: kafka", "zzz: kafka", "compositeWeight: mistyped?"),
    ],
)
def test_fault_of_other_tools_has_a_hint(
    tmp_path: Path, before: str, after: str, hint: str
) -> None:
    if hint.startswith("compositeWeight"):
        before, after = "op: lte", "op: lte\n      zzz: 1"
    assert any(hint in str(one) for one in findings(found_in(tmp_path, changed(before, after))))


def test_check_tells_json(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(MINE, "utf-8")
    told = json.loads(run("check", str(tmp_path / "a.yaml"), "--json").output)
    (one,) = told["objects"]
    assert (one["outcome"], one["objectives"], one["line"]) == ("supported", ["mine"], 1)


def test_names_do_not_steer_the_terminal(tmp_path: Path):
    text = changed("service: kafka", 'service: kafka\n  "\\e[2Jx\\u202e": 1')
    (tmp_path / "a.yaml").write_text(text, "utf-8")
    told = run("check", str(tmp_path)).output
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "\\u001b[2Jx\\u202e" in told


def test_list_chooses_by_labels(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(MINE, "utf-8")
    other = changed("name: mine\n  labels", "name: other\n  labels")
    (tmp_path / "b.yaml").write_text(changed("payments, core", "billing", other), "utf-8")
    folder = str(tmp_path)
    assert run("list", folder, "--label", "team=core").output.startswith("mine: topic ")
    assert len(json.loads(run("list", folder, "--label", "tier", "--json").output)) == 2
    assert run("list", folder, "--label", "team=nobody").output == ""


def test_what_the_docs_show_can_be_done(tmp_path: Path):
    text = (Path(__file__).parents[2] / "docs" / "objectives.md").read_text("utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    slos = [block for block in blocks if "kind: SLO" in block]
    assert [found_in(tmp_path, block)[0].outcome for block in slos] == ["supported"] * 3
    (planned,) = [block for block in blocks if block.startswith("maintenance:")]
    (tmp_path / "planned.yaml").write_text(planned, "utf-8")
    assert len(report_calendar.load_maintenance(tmp_path / "planned.yaml")) == 1
    (agreed,) = [block for block in blocks if block.startswith("corrections:")]
    (tmp_path / "agreed.yaml").write_text(agreed, "utf-8")
    loaded = report_calendar.load_corrections(tmp_path / "agreed.yaml")
    assert [len(part) for part in loaded] == [1, 0]
