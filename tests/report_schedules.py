"""Reports of lakes whose faults are known: their events are judged by their schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests import report_faults, report_lakes
from tests.report_causes import Verdict, judge
from tests.rig.teller import Teller
from tests.story_facts import facts_of
from tests.story_lake import Story
from tests.truth import replay
from tests.truth.parts import IN_PART, of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from tests.report_runs import Run

SEEDS: Final = (*range(8), *range(IN_PART, IN_PART + 4))
"""Simulated clusters: eight that are observed and four that are observed in part."""


def verdicts(
    folder: Path, runs: Iterable[Run], sample: Path, before: datetime
) -> Iterator[Verdict]:
    """Yield what the schedule of each lake says of its events.

    Args:
        folder: Folder for what is written.
        runs: The reports of the sample and of the demo.
        sample: The sample's lake.
        before: A Monday whose week is reported, too.
    """
    for one in runs:
        if one.name in {"sample", "running"}:
            yield judge(one.facts, report_faults.of_sample(one.facts))
        if one.name == "demo":
            played = json.loads((folder / "demo" / "truth.json").read_text(encoding="utf-8"))
            yield judge(one.facts, report_faults.of_demo(played))
    earlier = _week(folder, sample, before)
    yield judge(earlier, report_faults.of_sample(earlier))
    story = Story(hours=4)
    (folder / "story").mkdir()
    yield judge(facts_of(folder / "story", story), report_faults.of_story(story))
    yield from _simulated(folder / "simulated")


def _week(folder: Path, lake: Path, monday: datetime) -> dict[str, Any]:
    """Return the facts of a week of a lake."""
    file = folder / f"{monday:%G-W%V}.json"
    options = ("--week", f"{monday:%G-W%V}", "--json", str(file))
    report_lakes.jmxlake("report", str(lake), *options)
    return dict(json.loads(file.read_text(encoding="utf-8")))


def _simulated(folder: Path) -> Iterator[Verdict]:
    """Let the real agents read simulated clusters, and judge the report of each."""
    folder.mkdir()
    teller = Teller()
    replay.fill(folder, SEEDS, teller)
    for seed, facts in zip(SEEDS, replay.report(folder, SEEDS, teller.say), strict=True):
        schedule = of(seed)
        yield judge(facts, report_faults.of_schedule(schedule), schedule)
