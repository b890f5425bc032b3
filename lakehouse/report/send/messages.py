"""The short report as a mail, a message of Slack and a card of Microsoft Teams.

A mail has text, the same as HTML, and attached files. The same report to the same recipients is the
same message, with the same Message-ID and bytes, except for its date.

Names come from clients of the cluster. In Slack's markup a name could notify the whole room
(``<!channel>``) or disguise a link, so blocks for Slack, Mattermost and Rocket.Chat have plain text
only. Chats without blocks show ``text``, where names are in a block of code.

A workflow of Microsoft Teams receives an adaptive card (1.4). A ``TextBlock`` and a ``FactSet``
interpret Markdown, so a name in them could be a link. A ``TextRun`` interprets only
``{{DATE(...)}}`` and ``{{TIME(...)}}``, and mentions need an entity of the card that this one never
has.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from lakehouse.core import display
from lakehouse.errors import SendError
from lakehouse.report.facts.objectives.statement_rows import Status
from lakehouse.report.figures import Facts, Name, templates
from lakehouse.report.send.delivery import Letter, Mail
from lakehouse.report.summary import lines
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.opening import Tile
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.summary.texts import Strong, Text

MOST_EVENTS: Final = 5
_LINK_MARKS: Final = re.compile(r"://|@|(?i:www)(?=\.)")


@dataclass(frozen=True, slots=True)
class File:
    """A file to attach: its name, such as ``report.pdf``, its media type and its content."""

    name: str
    kind: str
    content: bytes


def letter(
    summary: Summary,
    files: Sequence[File],
    mail: Mail,
    now: dt.datetime,
    *,
    link: str | None = None,
    version: str = "",
) -> Letter:
    """Return the message.

    Args:
        summary: The report in short.
        files: The attachments.
        mail: Sender and recipients.
        now: The date of the message.
        link: Address of the report; None: no button.
        version: Version of jmxlake that made the report.

    Raises:
        SendError: An address is invalid, or not in ASCII.
    """
    message = EmailMessage(policy=SMTP)
    sender, to = _addressed(message, mail)
    subject = display.shorten(f"Kafka SLO: {lines.headline(summary)}; {_of(summary)}", 200)
    message["Subject"] = subject
    message["Date"] = now
    message["Auto-Submitted"] = "auto-generated"  # so that no auto-reply comes back
    attached = [file.name for file in files]
    shown = without_links(summary)
    message.set_content(text(shown, attached, link))
    html = _html(shown, attached, link, display.line(version))
    message.add_alternative(html, subtype="html")
    for file in files:
        main, _, sub = file.kind.partition("/")
        charset = {"charset": "utf-8"} if main == "text" else {}
        message.add_attachment(file.content, main, sub, filename=file.name, params=charset)
    digests = (hashlib.sha256(file.content).hexdigest() for file in files)
    _sign(message, [subject, html, *sender.split("@"), *to, *digests])
    return Letter(sender, to, message.as_bytes())


def text(summary: Summary, attached: Sequence[str], link: str | None) -> str:
    """Return the mail as plain text: the lines of the terminal."""
    made = lines.summary_text(summary, terminal=False, has_page=bool(link or attached))
    if link is not None:
        made += f"Report: {link}\n"
    return made + (f"Attached: {', '.join(attached)}\n" if attached else "")


def without_links(content: Any) -> Any:
    """Return the summary with names that mail programs do not show as links.

    A zero-width character after ``://``, ``@`` and ``www`` breaks the patterns of links.
    """
    if isinstance(content, str):
        return _LINK_MARKS.sub("\\g<0>\u200c", content)
    if isinstance(content, Name):
        return replace(content, text=without_links(content.text))
    if isinstance(content, tuple):
        changed = map(without_links, content)
        return content._make(changed) if hasattr(content, "_make") else tuple(changed)
    return content


def _of(summary: Summary) -> str:
    team = "" if summary.team is None else f"team {summary.team.text}, "
    return f"{team}cluster {summary.cluster.text}, {summary.week or summary.period}"


def file_name(facts: Facts, ending: str) -> str:
    """Return a name for a file of this report that is valid on every system."""
    week = facts.get("week")
    parts = ("kafka-slo", facts.get("team"), week["iso"] if week else str(facts["from"])[:10])
    safe = (re.sub(r"[^A-Za-z0-9]+", "-", str(part)).strip("-")[:40] for part in parts if part)
    return f"{'-'.join(filter(None, safe))}.{ending}"


def _addressed(message: EmailMessage, mail: Mail) -> tuple[str, tuple[str, ...]]:
    try:
        message["From"] = mail.sender
        message["To"] = ", ".join(mail.to)
        (sender,) = message["From"].addresses
        to = message["To"].addresses
    except (ValueError, IndexError) as error:
        raise SendError(f"mail: an address is invalid: {display.line(error)}") from error
    if not to:
        raise SendError("mail: no recipient. List at least one address in mail.to.")
    for address in (sender, *to):
        if not (address.username and address.domain and address.addr_spec.isascii()):
            raise SendError(
                f"mail: {display.line(str(address))!r} is not an address that every server "
                "accepts. Write it as name@example.org"
            )
    return sender.addr_spec, tuple(dict.fromkeys(address.addr_spec for address in to))


def _html(summary: Summary, attached: Sequence[str], link: str | None, version: str) -> str:
    template = templates("lakehouse.report.send").get_template("mail.html.j2")
    page = template.render(
        summary=summary,
        headline=lines.headline(summary),
        about=lines.about(summary),
        events=summary.events[:MOST_EVENTS],
        others=lines.other_events(summary, MOST_EVENTS),
        not_met=lines.not_met(summary),
        notes=lines.notes(summary),
        lines=lines,
        attached=attached,
        link=link,
        version=version,
    )
    return "\n".join(line for line in page.splitlines() if line.strip())


def _sign(message: EmailMessage, parts: Sequence[str]) -> None:
    """Derive the Message-ID and the boundaries from the content, not from chance."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@jmxlake>"
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{digest}_{number}")


# Chats.


HEADER_LIMIT: Final = 150


FIELD_LIMIT: Final = 2_000


TEXT_LIMIT: Final = 3_000


_FALLBACK_LIMIT: Final = 12_000


_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})

Block = dict[str, Any]


def slack_message(summary: Summary, link: str | None) -> Block:
    """Return a message for Slack, Mattermost or Rocket.Chat.

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
        yield _section("\n".join(filter(None, _event(event))))
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


def _event(event: Event) -> tuple[str, str, str]:
    """Return an event's title with its time, its cause, and what to do."""
    title = f"{_shown(lines.event_title(event))} ({lines.event_time(event)})"
    return title, _shown(lines.event_cause(event)), _shown(lines.event_action(event))


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
    rows += [row for event in summary.events[: lines.MOST_EVENTS] for row in _event(event)]
    code = "\n".join(filter(None, rows)).translate(_ESCAPED)
    headline = lines.headline(summary).translate(_ESCAPED)
    last = "" if link is None else f"\n{link.translate(_ESCAPED)}"
    return f"{headline}\n```\n{display.shorten(code, _FALLBACK_LIMIT)}\n```{last}"


SCHEMA: Final = "http://adaptivecards.io/schemas/adaptive-card.json"


KIND: Final = "application/vnd.microsoft.card.adaptive"


VERSION: Final = "1.4"


_RUN_LIMIT: Final = 600


_COLOURS: Final[dict[Status, str]] = {
    "missed": "attention", "at_risk": "warning", "uncertain": "warning", "no_data": "default",
    "on_track": "default", "met": "good",
}  # fmt: skip


def teams_message(summary: Summary, link: str | None) -> Block:
    """Return a message for Microsoft Teams: one card.

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


def _body(summary: Summary) -> Iterator[Block]:
    status = summary.headline.status
    headline = _run(lines.headline(summary), size="large", weight="bolder", color=_COLOURS[status])
    yield _block([headline])
    yield _block(_runs(lines.about(summary), isSubtle=True), spacing="none")
    if summary.lead:
        yield _block([run for text in summary.lead for run in (*_runs(text), _run(" "))][:-1])
    for number, tile in enumerate(summary.tiles):
        yield _tile_row(tile, is_first=not number)
    for event in summary.events[: lines.MOST_EVENTS]:
        title = _runs(lines.event_title(event), weight="bolder")
        time = _run(f" ({lines.event_time(event)})", isSubtle=True)
        yield _block([*title, time], separator=True)
        yield _block(_runs(lines.event_cause(event)), spacing="none")
        if action := lines.event_action(event):
            yield _block(_runs(action), spacing="none")
    others = lines.other_events(summary, lines.MOST_EVENTS)
    for text in ((others,) if others else (), *lines.notes(summary)):
        if text:
            yield _block(_runs(text, isSubtle=True, size="small"), separator=True)


def _tile_row(tile: Tile, *, is_first: bool) -> Block:
    colour = "default" if tile.status is None else _COLOURS[tile.status]
    value = _block([_run(tile.value, weight="bolder", color=colour)])
    columns = [
        _column(_block([_run(tile.label)]), width=2),
        _column(value, width=1),
        _column(_block(_runs(lines.context(tile) or ("",), isSubtle=True)), width=3),
    ]
    spacing = "default" if is_first else "small"
    return {"type": "ColumnSet", "columns": columns, "separator": is_first, "spacing": spacing}


def _column(item: Block, width: int) -> Block:
    return {"type": "Column", "width": width, "items": [item]}


def _block(runs: list[Block], **style: Any) -> Block:
    return {"type": "RichTextBlock", "inlines": runs, **style}


def _runs(text: Text, **style: Any) -> list[Block]:
    bold = {**style, "weight": "bolder"}
    return [
        _run(lines.plain((part,), isolate=True), **(bold if isinstance(part, Strong) else style))
        for part in text
    ]


def _run(text: str, **style: Any) -> Block:
    # The only function of a text run: two braces that do not meet are none.
    harmless = display.shorten(text, _RUN_LIMIT).replace("{{", "{ {")
    return {"type": "TextRun", "text": harmless, **style}
