"""The short report as a message for a chat, and its delivery to a secret address.

Names come from clients of the cluster. In Slack's markup a name could notify the whole room
(``<!channel>``) or disguise a link, so blocks for Slack, Mattermost and Rocket.Chat have plain text
only. Chats without blocks show ``text``, where names are in a block of code.

A workflow of Microsoft Teams receives an adaptive card (1.4). A ``TextBlock`` and a ``FactSet``
interpret Markdown, so a name in them could be a link. A ``TextRun`` interprets only
``{{DATE(...)}}`` and ``{{TIME(...)}}``, and mentions need an entity of the card that this one never
has.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from lakehouse.core import display
from lakehouse.errors import SendError
from lakehouse.report.facts.objectives.statement_rows import Status
from lakehouse.report.send.settings import Webhook, is_loopback, trust
from lakehouse.report.summary import lines
from lakehouse.report.summary.opening import Tile
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.summary.texts import Strong, Text

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
        yield _block(_runs(event.cause), spacing="none")
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


_RESPONSE_BYTES: Final = 300


def post(message: dict[str, Any], webhook: Webhook) -> None:
    """Post a message: only to this address, directly, and within the timeout as a whole.

    Raises:
        SendError: It was not accepted. The address is not in the error, because it is a secret.
    """
    url = webhook.url.read("webhook")
    _check_address(url)
    client = httpx.Client(
        verify=trust(webhook.ca_file, "webhook"),
        timeout=webhook.timeout_seconds,
        proxy=_proxy(url) if webhook.proxy else None,
        trust_env=False,  # the address is a secret, and ~/.netrc has others
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},  # unpacked, an answer could be endless
    )
    call: Future[str] = Future()
    threading.Thread(
        target=_post_once, args=(call, client, url, message), daemon=True, name="webhook"
    ).start()
    try:
        # httpx bounds each read and not their sum, and nothing bounds the look-up of the host.
        refusal = call.result(webhook.timeout_seconds)
    except TimeoutError:
        why = f"no answer within {webhook.timeout_seconds:g} s; it might have been posted"
        raise SendError(f"webhook: {why}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        reason = display.line(str(error).replace(url, "its address") or type(error).__name__)
        raise SendError(f"webhook: {reason}") from None
    if refusal:
        raise SendError(f"webhook: {display.line(refusal.replace(url, 'its address'))}")


def _post_once(call: Future[str], client: httpx.Client, url: str, message: dict[str, Any]) -> None:
    """Post in a thread of its own; a call that is given up ends with the process."""
    try:
        with client:
            call.set_result(_refusal(client, url, message))
    except Exception as error:  # noqa: BLE001 - it is raised where the result is taken
        call.set_exception(error)


def _refusal(client: httpx.Client, url: str, message: dict[str, Any]) -> str:
    """Return why a message was not accepted; empty: it was accepted."""
    with client.stream("POST", url, json=message) as response:
        if response.is_success:
            return ""
        content = b""
        with suppress(httpx.HTTPError):
            content = next(response.iter_raw(_RESPONSE_BYTES), b"")
    return f"it answered {response.status_code} {content.decode(errors='replace')}".rstrip()


def _proxy(url: str) -> str | None:
    """Return the environment's proxy for an address. None: there is none for it."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SendError("webhook: the address is not a URL") from None
    is_safe = bool(host) if parts.scheme == "https" else is_loopback(host)
    if parts.scheme not in {"http", "https"} or not is_safe:
        raise SendError("webhook: the address is neither https nor on this machine")
