"""The short report as an adaptive card (1.4) for a workflow of Microsoft Teams.

A ``TextBlock`` and a ``FactSet`` interpret Markdown, so a name in them could be a link. A
``TextRun`` interprets only ``{{DATE(...)}}`` and ``{{TIME(...)}}``, and mentions need an entity of
the card that this one never has.
"""

from collections.abc import Iterator
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report.facts.objectives.statement_rows import Status
from lakehouse.report.summary import lines
from lakehouse.report.summary.model import Strong, Summary, Text, Tile

SCHEMA: Final = "http://adaptivecards.io/schemas/adaptive-card.json"
KIND: Final = "application/vnd.microsoft.card.adaptive"
VERSION: Final = "1.4"
_RUN_LIMIT: Final = 600
_COLOURS: Final[dict[Status, str]] = {
    "missed": "attention", "at_risk": "warning", "uncertain": "warning", "no_data": "default",
    "on_track": "default", "met": "good",
}  # fmt: skip

Element = dict[str, Any]


def message(summary: Summary, link: str | None) -> Element:
    """Return the message: one card.

    Args:
        summary: The report in short.
        link: Address of the report (https); None: no button.
    """
    button = {"type": "Action.OpenUrl", "title": "Open report", "url": link}
    card = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": VERSION,
        "fallbackText": lines.headline(summary),
        "body": list(_body(summary)),
        "actions": [] if link is None else [button],
    }
    return {
        "type": "message",
        "attachments": [{"contentType": KIND, "contentUrl": None, "content": card}],
    }


def _body(summary: Summary) -> Iterator[Element]:
    status = summary.headline.status
    headline = _run(lines.headline(summary), size="large", weight="bolder", color=_COLOURS[status])
    yield _block([headline])
    yield _block(_runs(lines.about(summary), isSubtle=True), spacing="none")
    if summary.lead:
        yield _block([run for text in summary.lead for run in (*_runs(text), _run(" "))][:-1])
    for number, tile in enumerate(summary.tiles):
        yield _tile(tile, is_first=not number)
    for event in summary.events[: lines.MOST_EVENTS]:
        title = _runs(lines.event_title(event), weight="bolder")
        time = _run(f" ({lines.event_time(event)})", isSubtle=True)
        yield _block([*title, time], separator=True)
        yield _block(_runs(event.cause), spacing="none")
        if action := lines.event_action(event):
            yield _block(_runs(action), spacing="none")
    others = lines.other_events(summary, lines.MOST_EVENTS)
    for text in ((others,) if others else (), *lines.notes(summary)):
        if text:
            yield _block(_runs(text, isSubtle=True, size="small"), separator=True)


def _tile(tile: Tile, *, is_first: bool) -> Element:
    colour = "default" if tile.status is None else _COLOURS[tile.status]
    value = _block([_run(tile.value, weight="bolder", color=colour)])
    columns = [
        _column(_block([_run(tile.label)]), width=2),
        _column(value, width=1),
        _column(_block(_runs(lines.context(tile) or ("",), isSubtle=True)), width=3),
    ]
    spacing = "default" if is_first else "small"
    return {"type": "ColumnSet", "columns": columns, "separator": is_first, "spacing": spacing}


def _column(item: Element, width: int) -> Element:
    return {"type": "Column", "width": width, "items": [item]}


def _block(runs: list[Element], **style: Any) -> Element:
    return {"type": "RichTextBlock", "inlines": runs, **style}


def _runs(text: Text, **style: Any) -> list[Element]:
    bold = {**style, "weight": "bolder"}
    return [
        _run(lines.plain((part,), isolate=True), **(bold if isinstance(part, Strong) else style))
        for part in text
    ]


def _run(text: str, **style: Any) -> Element:
    # The only function of a text run: two braces that do not meet are none.
    harmless = display.shorten(text, _RUN_LIMIT).replace("{{", "{ {")
    return {"type": "TextRun", "text": harmless, **style}
