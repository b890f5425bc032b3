"""From an empty home to a report with uv: the wheel, and a local index."""

from __future__ import annotations

from tests.hands import first_report


def test_two_commands_create_a_report() -> None:
    printed: list[str] = []
    figures = first_report.counts(printed.append)
    assert figures["commands_to_first_report"] == 2
    assert any("of 9 objectives" in text for text in printed)
