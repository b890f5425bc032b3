"""Every metric that agents collect by default is shown by the report, or has a reason not to be."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from collector import catalogue
from lakehouse.report.facts.report_record import QUESTIONS, shown
from lakehouse.report.summary.objective_rows import section_of
from lakehouse.report.tables.section import sections

if TYPE_CHECKING:
    from lakehouse.report.facts.fields import Question

FACTS: Final = Path(__file__).parents[2] / "lakehouse" / "report" / "facts"
NOT_SHOWN: Final = {
    "kafka.client.controller_mutation.tokens": "below zero it is throttling, which is shown",
    "kafka.broker.*.answers_good": "what is good of the answers, which are shown, for objectives",
    "kafka.broker.produce.requests": "the answers to them are shown, by error",
    "kafka.broker.fetch_*.requests": "the answers to them are shown, by error",
    "kafka.rsm.upload_by_type.*": "their sums are those of kafka.rsm.upload",
}


DEFAULT: Final = [
    metric.replaces or metric.name
    for family in catalogue.load().families
    if family.enabled
    for metric in family.metrics
]


def patterns() -> list[str]:
    return sorted(shown())


@pytest.mark.parametrize("metric", DEFAULT)
def test_the_report_shows_it(metric: str):
    shown = any(fnmatchcase(metric, pattern) for pattern in patterns())
    excused = any(fnmatchcase(metric, pattern) for pattern in NOT_SHOWN)
    assert shown != excused, "add it to a section, or say why not"


def test_every_pattern_is_of_a_metric():
    shipped = {metric.name for family in catalogue.load().families for metric in family.metrics}
    others = {"kafka.partition.unavailable"}  # derived
    for pattern in (*patterns(), *NOT_SHOWN):
        assert any(fnmatchcase(name, pattern) for name in shipped | others), pattern


LISTED: Final = [one for question in QUESTIONS for one in question.shows if isinstance(one, str)]
"""Metrics and patterns that are not those of a record's fields."""


@pytest.mark.parametrize("metric", [one for one in LISTED if "*" not in one])
def test_listed_metric_is_named_by_the_facts(metric: str):
    code = (*FACTS.rglob("*.py"), FACTS.parents[1] / "core" / "metrics.py")
    named = sum(file.read_text("utf-8").count(f'"{metric}"') for file in code)
    assert named > 1, "the question names it, and a function must"


@pytest.mark.parametrize("question", [one for one in QUESTIONS if one.metrics])
def test_figures_of_a_question_are_in_a_section(question: Question):
    assert question.section in {one.anchor for one in sections()}


@pytest.mark.parametrize(
    ("section", "metrics"),
    [
        ("availability", ["kafka.partition.unavailable"]),
        ("replication", ["kafka.partition.unclean_leader"]),
        ("throttling", ["kafka.client.fetch.throttle_time"]),
        ("tiered", ["kafka.partition.upload_lag.records"]),
        ("loss", ["kafka.group.non_consumed"]),
        ("lag", ["kafka.group.time_lag"]),
        ("requests", ["kafka.broker.fetch.answers_good", "kafka.broker.fetch.answers"]),
        ("coverage", ["jmxlake.coverage"]),
        ("own-metrics", ["kafka.broker.request_handler.idle"]),
        ("own-metrics", ["acme.queue_size"]),
    ],
)
def test_objective_links_to_the_section_with_its_figures(section: str, metrics: list[str]):
    assert section_of(metrics) == section
