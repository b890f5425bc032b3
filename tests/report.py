"""Compares what every channel of five reports states, judges their events, and ends with JSON.

python -m tests.report [--without-demo] [--lake FOLDER] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.summary.summarize import summarize
from tests import (
    report_browser,
    report_lakes,
    report_runs,
    report_schedules,
    report_statements,
    summary_facts,
)
from tests.report_places import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.report_runs import Judged, Run

CLAIM: Final = "Every channel of a report says what its JSON says, briefly and with the right cause"
BARS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "contradictions": lambda value: value == 0,
    "statements": lambda value: value >= 500,
    "mutations_found_percent": lambda value: value >= 80,
    "places_per_column": lambda value: value == 1,
    "headline_met_with_misses": lambda value: value == 0,
    "screens_to_details": lambda value: value <= 5,
    "screens_to_details_390": lambda value: value <= 12,
    "unknown_words": lambda value: value <= 40,
    "plus_minus_zero": lambda value: value == 0,
    "microseconds_shown": lambda value: value == 0,
    "axe_violations": lambda value: value == 0,
    "page_kb_fleet": lambda value: value <= 1_500,
    "executive_pages": lambda value: value == 1,
    "channels": lambda value: value == len(report_runs.CHANNELS),
    "events_judged": lambda value: value >= 8,
    "events_with_cause_percent": lambda value: value >= 80,
    "wrong_causes": lambda value: value == 0,
    "wrong_times": lambda value: value == 0,
}
"""What a figure has to be."""

_RANDOM: Final = 400
_UNKNOWN: Final = re.compile(r"unknown|not known", re.IGNORECASE)
_ZERO: Final = re.compile(r"± ?0(?![\d.,])")
_FORBIDDEN: Final = re.compile(r"\bmet\b")


def figures(
    folder: Path, lake: Path | None, *, with_demo: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return every figure, and the findings behind those that are not zero."""
    runs = written(folder, lake, with_demo=with_demo)
    judged = {one.name: report_runs.judge(one) for one in runs}
    findings = [text for one in judged.values() for text in one.contradictions]
    sample = next(one for one in runs if one.name == "sample")
    fleet = next(one for one in runs if one.name == "fleet")
    found = {**_compared(judged.values()), **_browsed(folder, runs, findings)}
    met = [one.name for one in runs if _is_met_with_misses(one.facts, summarize(one.facts))]
    times = [text for one in runs for text in report_runs.microseconds(one)]
    zeros = [f"±0 in {one.name}, {channel}" for one in runs
             for channel, text in one.texts.items() for _ in _ZERO.findall(text)]  # fmt: skip
    declared = places()
    findings += [*times, *zeros, *(f"{key}: {n} places" for key, n in declared.items() if n > 1)]
    found |= {
        "places_per_column": max(declared.values()),
        "headline_met_with_misses": len(met) + random_headlines(),
        "unknown_words": len(_UNKNOWN.findall(sample.texts["page"])),
        "plus_minus_zero": len(zeros),
        "microseconds_shown": len(times),
        "page_kb_fleet": round(len(fleet.page.encode()) / 1_000),
        "executive_pages": max(executive_pages(one) for one in runs if one.name != "blind"),
        **_caused(runs, folder, lake, findings),
    }
    return found, findings


def written(folder: Path, lake: Path | None, *, with_demo: bool) -> list[Run]:
    """Report every lake once to every channel."""
    sample = lake or report_lakes.sample(folder)
    monday = _monday(sample)
    week, running = (f"{day:%G-W%V}" for day in (monday - timedelta(days=7), monday))
    beside = [f"--{kind}={sample.with_name(f'{sample.name}-{kind}.yaml')}"
              for kind in ("owners", "maintenance")]  # fmt: skip
    span = tuple(day.isoformat() for day in (monday - timedelta(days=7), monday))
    fleet = report_lakes.fleet(sample, folder, (span[0], span[1]))
    blind = report_lakes.blind(folder)
    runs = [
        report_runs.run("sample", sample, folder, "--week", week, *beside),
        report_runs.run("running", sample, folder, "--week", running, *beside),
        report_runs.run("fleet", fleet, folder, "--week", week, beside[0]),
        report_runs.run("blind", blind, folder, *report_lakes.BLIND_PERIOD),
    ]
    return [*runs, *([_demo(folder)] if with_demo else [])]


def _monday(lake: Path) -> datetime:
    """Return the start of the week that runs at the end of the sample."""
    written_at = datetime.fromtimestamp(lake.stat().st_mtime).astimezone()
    now = datetime.fromisoformat(f"{written_at:%Y-%m-%d}T00:00:00+00:00")
    return now - timedelta(days=now.weekday())


def _demo(folder: Path) -> Run:
    """Play the demo, and report its lake as it did."""
    played = folder / "demo"
    command = [sys.executable, "-m", "demo", "--folder", str(played)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    facts = json.loads((played / "report.json").read_text(encoding="utf-8"))
    return report_runs.run(
        "demo", played / "lake", folder, "--from", facts["from"], "--to", facts["to"],
        "--objectives", str(played / "objectives"),
    )  # fmt: skip


def _compared(judged: Iterable[Judged]) -> dict[str, Any]:
    found = list(judged)
    by_channel: Counter[str] = Counter()
    for one in found:
        by_channel.update(one.statements)
    mutations, seen = (
        sum(sum(getattr(one, name).values()) for one in found) for name in ("mutations", "found")
    )
    return {
        "contradictions": sum(len(one.contradictions) for one in found),
        "statements": by_channel.total(),
        "statements_by_channel": dict(by_channel),
        "channels": sum(all(one.statements[name] for one in found) for name in by_channel),
        "mutations": mutations,
        "mutations_found_percent": round(100 * seen / mutations, 1) if mutations else 0,
    }


def _browsed(folder: Path, runs: Iterable[Run], findings: list[str]) -> dict[str, Any]:
    seen_by = report_browser.browser(folder)
    wide, narrow, broken = [], [], 0
    for one in runs:
        wide.append(report_browser.screens_to_details(seen_by, one.page, report_browser.WIDE))
        narrow.append(report_browser.screens_to_details(seen_by, one.page, report_browser.NARROW))
        found = report_browser.violations(seen_by, one.page)
        findings += [f"axe, {one.name}, {text[:400]}" for text in found]
        broken += len(found)
    return {
        "screens_to_details": max(wide),
        "screens_to_details_390": max(narrow),
        "axe_violations": broken,
    }


def _caused(
    runs: Iterable[Run], folder: Path, lake: Path | None, findings: list[str]
) -> dict[str, Any]:
    """Judge the events of every lake whose faults are known."""
    sample = lake or folder / "sample"
    before = _monday(sample) - timedelta(days=14)
    found = list(report_schedules.verdicts(folder, runs, sample, before))
    findings += [f"wrong cause: {text}" for one in found for text in one.wrong]
    findings += [f"wrong time: {text}" for one in found for text in one.mistimed]
    traced = sum(one.with_trace for one in found)
    return {
        "events_judged": sum(one.judged for one in found),
        "events_with_cause_percent": round(
            100 * sum(one.with_cause for one in found) / traced if traced else 0
        ),
        "wrong_causes": sum(len(one.wrong) for one in found),
        "wrong_times": sum(len(one.mistimed) for one in found),
    }


def executive_pages(one: Run) -> int:
    """Return how many sheets of paper the report in short takes; the second repeats nothing."""
    sheets = [re.sub(r"\s", "", sheet) for sheet in one.sheets]
    titles = [row["title"] for row in one.facts["objectives"]]
    labels = [each.key for each in report_statements.of_page(one.page)
              if each.about == "tile"]  # fmt: skip
    wanted = {re.sub(r"\s", "", text) for text in (*titles, *labels)}
    for number in range(1, len(sheets) + 1):
        if all(text in "".join(sheets[:number]) for text in wanted):
            return number
    return len(sheets) + 1


def _is_met_with_misses(facts: Mapping[str, Any], summary: Any) -> bool:
    is_missed = any(one["status"] == "missed" for one in facts["objectives"])
    return is_missed and bool(_FORBIDDEN.search(summary.headline.text))


def random_headlines() -> int:
    """Return how many of some hundred random reports say met in a headline with a miss."""
    dice, found = random.Random(44), 0
    for _ in range(_RANDOM):
        make = dice.choice((summary_facts.facts, summary_facts.running, summary_facts.blind))
        facts = make()
        for row, verdict in zip(facts["objectives"], facts["verdicts"], strict=True):
            row["status"] = dice.choice(
                ("missed", "uncertain", "no_data", "met", "at_risk", "on_track")
            )
            verdict["verdict"] = row["status"] if row["status"] in {"missed", "met"} else "no_data"
        facts["coverage"]["percent"] = dice.choice((99.9, 51.0, 49.0, 0.0))
        facts["previous"] = dice.choice((None, facts["previous"]))
        found += _is_met_with_misses(facts, summarize(facts))
    return found


def main() -> int:
    """Measure, print the findings, and end with the figures; 1 if a bar is not reached."""
    options = argparse.ArgumentParser(prog="python -m tests.report", description=__doc__)
    options.add_argument("--without-demo", action="store_true", help="leave out the four minutes")
    options.add_argument("--lake", type=Path, help="a sample's lake that is rolled up already")
    options.add_argument("--keep", type=Path, help="folder for what was written; it must not exist")
    given = options.parse_args()
    with TemporaryDirectory() as parent:
        folder = given.keep or Path(parent) / "report"
        folder.mkdir()
        found, findings = figures(folder, given.lake, with_demo=not given.without_demo)
    for text in findings:
        sys.stderr.write(f"{text}\n")
    failed = [name for name, holds in BARS.items() if not holds(found[name])]
    for name in failed:
        sys.stderr.write(f"the bar is missed: {name} is {found[name]}\n")
    sys.stdout.write(json.dumps({"claim": CLAIM, "figures": found, "ratios": {}}) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
