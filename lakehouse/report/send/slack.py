"""The short report as a message for Slack, Mattermost and Rocket.Chat.

Names come from clients of the cluster. In Slack's markup a name could notify the whole room
(``<!channel>``) or disguise a link, so blocks have plain text only. Chats without blocks show
``text``, where names are in a block of code.
"""

from collections.abc import Iterator
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report.summary import lines
from lakehouse.report.summary.model import Summary, Text, Tile

HEADER_LIMIT: Final = 150
FIELD_LIMIT: Final = 2_000
TEXT_LIMIT: Final = 3_000
_FALLBACK_LIMIT: Final = 12_000
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})

Block = dict[str, Any]


def message(summary: Summary, link: str | None) -> Block:
    """Return the message.

    Args:
        summary: The report in short.
        link: Address of the report (https); None: no button.
    """
    return {"text": _fallback(summary, link), "blocks": list(_blocks(summary, link))}


def _blocks(summary: Summary, link: str | None) -> Iterator[Block]:
    yield {"type": "header", "text": _text(lines.headline(summary), HEADER_LIMIT)}
    yield _context(_shown(lines.about(summary)))
    if summary.lead:
        yield _section(" ".join(map(_shown, summary.lead)))
    if summary.tiles:
        fields = [_text("\n".join(_tile(tile)), FIELD_LIMIT) for tile in summary.tiles]
        yield {"type": "section", "fields": fields}
    for event in summary.events[: lines.MOST_EVENTS]:
        title = f"{_shown(lines.event_title(event))} ({lines.event_time(event)})"
        rest = (_shown(event.cause), _shown(lines.event_action(event)))
        yield _section("\n".join(filter(None, (title, *rest))))
    if others := lines.other_events(summary, lines.MOST_EVENTS):
        yield _context(others)
    if notes := " ".join(map(_shown, lines.notes(summary))):
        yield _context(notes)
    if link is not None:
        button = {"type": "button", "text": _text("Open report", 75), "url": link}
        yield {"type": "actions", "elements": [button]}


def _tile(tile: Tile) -> tuple[str, str]:
    context = _shown(lines.context(tile))
    return tile.label, f"{tile.value} ({context})" if context else tile.value


def _shown(text: Text) -> str:
    return lines.plain(text, isolate=True)


def _section(text: str) -> Block:
    return {"type": "section", "text": _text(text, TEXT_LIMIT)}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [_text(text, TEXT_LIMIT)]}


def _text(value: str, limit: int) -> Block:
    return {"type": "plain_text", "text": display.shorten(value, limit), "emoji": False}


def _fallback(summary: Summary, link: str | None) -> str:
    """Return the message for notifications and for chats without blocks."""
    rows = [_shown(lines.about(summary)), " ".join(map(_shown, summary.lead))]
    rows += [": ".join(_tile(tile)) for tile in summary.tiles]
    for event in summary.events[: lines.MOST_EVENTS]:
        rows.append(f"{_shown(lines.event_title(event))} ({lines.event_time(event)})")
        rows += [_shown(event.cause), _shown(lines.event_action(event))]
    code = "\n".join(filter(None, rows)).translate(_ESCAPED)
    headline = lines.headline(summary).translate(_ESCAPED)
    last = "" if link is None else f"\n{link.translate(_ESCAPED)}"
    return f"{headline}\n```\n{display.shorten(code, _FALLBACK_LIMIT)}\n```{last}"
