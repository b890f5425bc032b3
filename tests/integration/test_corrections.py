"""Corrections after the fact: what is left out, and what the commands say of wrong ones.

What must come out is computed beside it in plain Python: rows of gold whose window lies in no
correction that names their topic and the objective.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings, strategies as st

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core.periods import instant, iso
from lakehouse.report.facts.build import facts
from lakehouse.slo.report_calendar import Calendar, Correction, Maintenance
from tests import gold_builder
from tests.integration import test_objectives
from tests.integration.test_objectives import (
    _FILE,
    DAY,
    END,
    HOUR,
    LATE,
    PLAIN,
    ROLLING,
    ROWS,
    SLICED,
    START,
    TOPICS,
    WEEK,
    WINDOW,
    read,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.engines.engine import Engine
    from lakehouse.slo.sla_statement import Statement

pytestmark = pytest.mark.reads

engine = test_objectives.engine
OTHER = replace(PLAIN, name="month")


@pytest.fixture(scope="module")
def plain(engine: Engine) -> dict[tuple[str, str | None], Statement]:
    """Statements without a correction."""
    return read(engine, [PLAIN, OTHER])


@pytest.fixture(scope="module")
def whole(engine: Engine) -> Engine:
    """The same lake with every table that a report reads."""
    for table in (*tables.GOLD, tables.WINDOWS["partitions"]):
        gold_builder.put(engine.lake.root, table)
    return engine


def correction(start_us: int, end_us: int, **more: Any) -> Correction:
    names = {name: (glob,) for name, glob in more.pop("names", {}).items()}
    return Correction(start_us, end_us, "ours", names, approved_by="Ada", ticket="OPS-1", **more)


def corrections() -> st.SearchStrategy[list[Correction]]:
    """Corrections of up to two days, on edges of windows or beside them."""
    ends = st.tuples(st.integers(START - DAY, END), st.integers(1, 2 * DAY))
    named = st.sampled_from([{}, {"topic": "old"}, {"topic": "*o*"}, {"cluster": "d"}])
    on = st.sampled_from([("*",), ("plain",), ("m*",), ("mon*", "rolling")])
    one = st.builds(
        lambda span, names, objectives: correction(
            span[0], span[0] + span[1], names=names, objectives=objectives
        ),
        ends, named, on,
    )  # fmt: skip
    return st.lists(one, max_size=4)


def left(chosen: list[Correction], objective: str, topic: str) -> tuple[list[int], int]:
    """Sums of the rows outside, and the time in which the topic existed outside."""
    windows: set[int] = set()
    for one in chosen:
        named = one.names.get("topic", ("*",))[0]
        is_named = named in {"*", topic} or (named == "*o*" and "o" in topic)
        on = any(glob == "*" or objective.startswith(glob.rstrip("*")) for glob in one.objectives)
        if is_named and "cluster" not in one.names and on:
            every = range(START, END, WINDOW)
            windows |= {at for at in every if one.start_us <= at and at + WINDOW <= one.end_us}
    rows = [row for row in ROWS[topic] if row[0] >= START and row[0] not in windows]
    lived = (
        min(WINDOW, max(0, at + WINDOW - TOPICS[topic]))
        for at in range(START, END, WINDOW)
        if at not in windows
    )
    return [sum(row[n] for row in rows) for n in range(1, 5)], sum(lived)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(corrections())
def test_the_agreed_statement_is_that_of_the_rows_outside(
    engine: Engine, plain: dict[tuple[str, str | None], Statement], chosen: list[Correction]
):
    found = read(engine, [PLAIN, OTHER], corrections=tuple(chosen))
    for (name, topic), one in found.items():
        assert replace(one, corrections=(), agreed=None) == plain[name, topic], "never hidden"
        times, expected = left(chosen, name, topic)
        agreed = one.agreed or one
        assert (list(agreed.times), agreed.expected_us) == (times, expected)
        assert bool(one.agreed) == bool(one.corrections)


def test_maintenance_and_corrections_are_left_out_apart(engine: Engine):
    planned = Maintenance(START, START + HOUR, "disks")
    agreed = correction(START + DAY, START + DAY + 2 * HOUR, objectives=("by-hour",))
    options: dict[str, Any] = {"maintenance": (planned,), "corrections": (agreed,)}
    found = read(engine, [PLAIN, *SLICED], **options)
    one, other = found["by-hour", "old"], found["plain", "old"]
    assert one.without is not None
    assert one.agreed is not None
    assert one.without.expected_us == one.expected_us - HOUR
    assert one.agreed.expected_us == one.expected_us - 2 * HOUR
    assert (other.agreed, other.corrections) == (None, ())


def test_a_cluster_and_each_partition_have_an_agreed_figure_too(whole: Engine):
    agreed = correction(START, START + DAY, names={"topic": "old"})
    total = read(whole, [replace(PLAIN, level="cluster")], corrections=(agreed,))["plain", None]
    assert total.agreed is not None
    assert total.agreed.whole_us == total.whole_us - 3 * DAY, "old has three partitions"
    each = read(whole, [replace(PLAIN, level="partition")], corrections=(agreed,))
    one = each["plain", "old"]
    assert one.agreed is not None
    assert one.agreed.expected_us == one.expected_us - DAY
    assert each["plain", "young"].agreed is None


def test_correction_shows_both_verdicts_and_approver(whole: Engine):
    bad = [row[0] for row in ROWS["old"] if row[0] >= START and row[2]]
    every = tuple(correction(at, at + WINDOW, names={"topic": "old"}) for at in bad)
    target = replace(PLAIN, target=0.9995)
    now = instant(LATE)
    told = facts(whole, [target], WEEK, now=now, calendar=Calendar(corrections=every))
    (objective,) = told["objectives"]
    old = next(one for one in objective["subjects"] if one["topic"] == "old")
    raw = facts(whole, [target], WEEK, now=now)
    assert old["verdict"] == "missed"
    assert old["agreed"]["verdict"] != "missed"
    assert old["agreed"]["bad_us"] == 0
    assert len(told["corrections"]) == len(every)
    assert told["corrections"][0]["approved_by"] == "Ada"
    assert [row["verdict"] for row in told["verdicts"]] == [r["verdict"] for r in raw["verdicts"]]
    assert raw["verdicts"][0]["agreed"] is None


def of(engine: Engine, folder: Path) -> list[str]:
    (folder / "objectives").mkdir(exist_ok=True)
    (folder / "objectives" / "a.yaml").write_text(_FILE, "utf-8")
    objectives = str(folder / "objectives")
    return [engine.lake.root, "--week", "2024-W47", "--objectives", objectives]


def run(engine: Engine, command: str, file: Path, *more: str) -> tuple[int, str, list[str]]:
    result = CliRunner().invoke(
        main, [*command.split(), *of(engine, file.parent), "--corrections", str(file), *more]
    )
    lines = [line.removeprefix("jmxlake: ") for line in result.stderr.splitlines()]
    return result.exit_code, result.stdout, lines


def written(folder: Path, *entries: str, start: str = "2024-11-19T00:00:00Z") -> Path:
    file = folder / "corrections.yaml"
    approved = "reason: ours, approved_by: Ada, ticket: OPS-1"
    text = "".join(f"  - {{{entry.format(start=start, approved=approved)}}}\n" for entry in entries)
    file.write_text(f"corrections:\n{text}", "utf-8")
    return file


GOOD = "start: {start}, end: 2024-11-19T02:00:00Z, {approved}, topics: [old]"


def statements(engine: Engine) -> list[dict[str, Any]]:
    return engine.collect(engine.rows(tables.SLA)).to_pylist()


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        (["start: {start}, end: 2024-11-19T02:00:00Z, reason: a, ticket: b"],
         ["2:5: invalid: corrections[0]: approved_by is missing"]),
        (["start: {start}, end: 2124-11-19T02:00:00Z, {approved}"],
         ["it ends in the future; write planned work as maintenance"]),
        ([GOOD + ", objectives: [by-huor]"],
         ["corrections[0].objectives: nothing here is called by-huor; did you mean by-hour?"]),
        (["start: {start}, end: 2024-11-19T02:00:00Z, {approved}, topics: [olt]"],
         ["corrections[0].topics: nothing here is called olt; did you mean old?"]),
        ([GOOD, GOOD], ["3:", "it overlaps the correction of line 2"]),
        (["start: {start}", "end: {start}, ticket: 4"], ["2:5: ", "3:5: "]),
    ],
)  # fmt: skip
def test_wrong_correction_publishes_no_result(
    engine: Engine, tmp_path: Path, entries: list[str], wanted: list[str]
):
    before = statements(engine)
    code, _, lines = run(engine, "slo publish", written(tmp_path, *entries))
    assert code == 1
    faults, last = lines[:-1], lines[-1]
    assert len(faults) == (2 if "3:5: " in wanted else 1), lines
    assert all(any(part in fault for fault in faults) for part in wanted), lines
    assert all(fault.startswith(f"{tmp_path}/corrections.yaml:") for fault in faults)
    assert last == "no SLO results computed or published. Correct the file first"
    assert statements(engine) == before


def test_two_that_share_no_subject_do_not_overlap(whole: Engine, tmp_path: Path):
    other = GOOD.replace("[old]", "[young]")
    code, _, lines = run(whole, "report", written(tmp_path, GOOD, other))
    assert code == 0, lines


def test_correction_of_published_week_adds_a_statement(whole: Engine, tmp_path: Path):
    published = CliRunner().invoke(main, ["slo", "publish", *of(whole, tmp_path)])
    assert published.exit_code == 0, published.output
    first = {(row["objective"], row["topic"]): row for row in statements(whole)}
    code, out, lines = run(whole, "slo publish", file := written(tmp_path, GOOD))
    assert (code, out.strip()) == (0, "3 SLO results, 1 of them new or changed"), lines
    assert (
        f"{file}:2:5: note: corrections[0]: 1 published SLO result restated; both versions are kept"
        in lines
    )
    rows = [row for row in statements(whole) if row["statement"] == 2]
    assert {row["topic"] for row in rows} == {"old"}
    for row in rows:
        before = first[row["objective"], "old"]
        assert row["verdict"] == before["verdict"], "the raw one stays"
        assert (before["agreed_verdict"], before["corrections"]) == (None, None)
        assert row["agreed_verdict"] in {"met", "missed", "uncertain", "no_data"}
        (kept,) = json.loads(row["corrections"])
        assert (kept["approved_by"], kept["ticket"]) == ("Ada", "OPS-1")
        assert kept["start"] == iso(START + DAY)
    page = tmp_path / "page.json"
    code, _, lines = run(whole, "report", file, "--json", str(page))
    assert code == 0, lines
    told = json.loads(page.read_text("utf-8"))
    assert {row["topic"] for row in told["restated"]} == {"old"}
    (row, *_) = told["restated"]
    assert row["before"]["agreed_verdict"] is None
    assert row["now"]["agreed_verdict"] is not None
    assert run(whole, "slo publish", file)[1].strip().endswith("0 of them new or changed"), "once"


def test_rolling_windows_reach_corrections_of_earlier_weeks(engine: Engine):
    agreed = correction(START - 10 * DAY, START - 9 * DAY)
    found: dict[Any, Statement] = read(
        engine, [PLAIN, ROLLING], own_windows=True, corrections=(agreed,)
    )
    assert found["plain", "old"].agreed is None
    rolling = found["rolling", "old"]
    assert rolling.agreed is not None
    assert rolling.agreed.expected_us == rolling.expected_us - DAY
