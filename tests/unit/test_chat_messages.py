"""What Slack and Microsoft Teams are sent: the words of the report, and no markup of a name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse.report.send import messages
from lakehouse.report.summary import lines
from tests import summaries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.report.summary.summarize import Summary

LINK: Final = "https://reports.example.org/kafka/2026-W47.html"
WEEKS: Final = {
    "bad": summaries.bad_week(),
    "running": summaries.running_week(),
    "quiet": summaries.quiet_week(),
    "blind": summaries.blind_week(),
    **{
        f"odd-{number}": summaries.hostile_week(odd)
        for number, odd in enumerate(summaries.ODD_NAMES)
    },
}
every_week = pytest.mark.parametrize("week", WEEKS.values(), ids=WEEKS)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from nodes(one)


def texts(value: Any) -> list[str]:
    return [one["text"] for one in nodes(value) if isinstance(one.get("text"), str)]


def said(week: Summary) -> Iterator[str]:
    """What every chat has to state, in words."""
    yield lines.headline(week)
    yield lines.plain(lines.about(week))
    yield from map(lines.plain, (*week.lead, *lines.notes(week)))
    for tile in week.tiles:
        yield from (tile.label, tile.value, lines.plain(lines.context(tile)))
    for event in week.events[:3]:
        yield lines.plain(lines.event_title(event))
        yield lines.event_time(event)
        yield from (lines.plain(event.cause), lines.plain(lines.event_action(event)))


@pytest.mark.parametrize("name", ["bad", "running", "quiet", "blind"])
def test_both_chats_state_the_same_words_and_numbers(name: str) -> None:
    week = WEEKS[name]
    blocks = " ".join(texts(messages.slack_message(week, LINK)["blocks"]))
    card = messages.teams_message(week, LINK)["attachments"][0]["content"]["body"]
    runs = "".join(texts(card))
    for words in said(week):
        assert words in blocks
        assert words in runs


def test_a_message_has_three_events_and_says_how_many_more() -> None:
    made = messages.slack_message(WEEKS["bad"], LINK)
    shown = [one for one in texts(made["blocks"]) if re.match(r"\d\. ", one)]
    assert [one[0] for one in shown] == ["1", "2", "3"]
    assert "4 more events are in the report." in texts(made["blocks"])
    assert "4 more events are in the report." in texts(messages.teams_message(WEEKS["bad"], None))


@every_week
def test_slack_gets_plain_text_within_its_limits(week: Summary) -> None:
    made = json.loads(json.dumps(messages.slack_message(week, LINK)))
    assert set(made) == {"text", "blocks"}
    assert len(made["blocks"]) <= 50
    for block in made["blocks"]:
        fields = block.get("fields", ())
        assert len(fields) <= 10
        limit = {"header": 150, "actions": 75}.get(block["type"], 2000 if fields else 3000)
        shown = [one for one in nodes(block) if "text" in one and one["type"] == "plain_text"]
        assert all(0 < len(one["text"]) <= limit for one in shown)
        kinds = {one["type"] for one in nodes(block) if "text" in one and one is not block}
        assert kinds <= {"plain_text", "button"}, "no mrkdwn, which names could use"


@every_week
def test_no_name_is_markup_of_a_chat_without_blocks(week: Summary) -> None:
    text = messages.slack_message(week, LINK)["text"]
    assert not set("<>") & set(text)
    head, code, last = text.split("```")
    assert head.strip() == lines.headline(week).translate(messages._ESCAPED)
    assert code.startswith("\n")
    assert last == f"\n{LINK}"


@every_week
def test_only_the_button_is_a_link(week: Summary) -> None:
    for made in (messages.slack_message(week, LINK), messages.teams_message(week, LINK)):
        urls = [one["url"] for one in nodes(made) if "url" in one]
        assert urls == [LINK]
    for made in (messages.slack_message(week, None), messages.teams_message(week, None)):
        assert not [one for one in nodes(made) if {"url", "selectAction"} & set(one)]


# The rules of the schema of adaptive cards 1.4 for the elements that the card may use: required
# and other properties, and the values of the enumerations.
SPACING: Final = {"default", "none", "small", "medium", "large", "extraLarge", "padding"}
COLOURS: Final = {"default", "dark", "light", "accent", "good", "warning", "attention"}
OF_ELEMENTS: Final[dict[str, Any]] = {
    "spacing": SPACING, "separator": bool, "id": str, "isVisible": bool,
}  # fmt: skip
RULES: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "AdaptiveCard": (
        {"version": {"1.4"}, "body": list},
        {"$schema": str, "actions": list, "fallbackText": str, "lang": str},
    ),
    "RichTextBlock": ({"inlines": list}, OF_ELEMENTS),
    "TextRun": (
        {"text": str},
        {
            "color": COLOURS, "isSubtle": bool, "italic": bool, "weight":
            {"default", "lighter", "bolder"}, "size": {"default", "small", "medium", "large",
            "extraLarge"},
        },
    ),
    "ColumnSet": ({"columns": list}, OF_ELEMENTS),
    "Column": ({"items": list, "width": int}, {"spacing": SPACING, "separator": bool}),
    "Action.OpenUrl": ({"url": str, "title": str}, {}),
}  # fmt: skip
WITHIN: Final = {
    "body": {"RichTextBlock", "ColumnSet"}, "inlines": {"TextRun"}, "columns": {"Column"},
    "items": {"RichTextBlock"}, "actions": {"Action.OpenUrl"},
}  # fmt: skip


def check(element: dict[str, Any]) -> None:
    required, others = RULES[element["type"]]
    assert set(required) <= set(element)
    for key, value in element.items():
        if key == "type":
            continue
        rule = {**required, **others}[key]
        assert isinstance(value, rule) if isinstance(rule, type) else value in rule
        if isinstance(value, list):
            assert value or key == "actions", "Teams shows no card with an empty list"
            for one in value:
                assert one["type"] in WITHIN[key]
                check(one)


@every_week
def test_card_follows_the_schema_and_fits_into_a_message(week: Summary) -> None:
    made = messages.teams_message(week, LINK)
    assert made["type"] == "message"
    (attached,) = made["attachments"]
    assert set(attached) == {"contentType", "contentUrl", "content"}
    assert attached["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attached["content"]["type"] == "AdaptiveCard"
    check(attached["content"])
    assert len(json.dumps(made, ensure_ascii=False).encode()) < 28_000, "what Teams takes"


@every_week
def test_no_name_is_markdown_a_mention_or_a_function_of_a_card(week: Summary) -> None:
    made = messages.teams_message(week, LINK)
    for one in nodes(made):
        assert one.get("type") not in {"TextBlock", "FactSet", "Fact"}, "these have Markdown"
        assert "entities" not in one
    assert not [one for one in texts(made) if "{{" in one]
    card = made["attachments"][0]["content"]
    assert card["fallbackText"] == lines.headline(week), "it may be Markdown, and has no name"


def test_a_name_from_right_to_left_moves_no_other_word() -> None:
    odd = "\u05d0\u05d1 x"
    for made in (messages.slack_message, messages.teams_message):
        shown = " ".join(texts(made(summaries.hostile_week(odd), None)))
        assert f"\u2068{odd}\u2069" in shown
        assert "\u2068" not in " ".join(texts(made(WEEKS["bad"], None)))
