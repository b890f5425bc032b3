"""A message to a chat: JSON as Slack takes it, posted to an address that is a secret.

Names come from clients of the cluster. In a chat's own markup one could call everybody in the room
(``<!channel>``), or show a link as another; so they stand in plain text, and in the text for
clients without blocks as code, escaped.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx

from lakehouse.errors import SendError
from lakehouse.report import words
from lakehouse.send.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.send.digest import Digest
    from lakehouse.send.settings import Webhook

HEADER_LIMIT: Final = 150
TEXT_LIMIT: Final = 3_000
_FALLBACK_LIMIT: Final = 12_000
_ANSWER_BYTES: Final = 300
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})


def payload(told: Digest) -> dict[str, Any]:
    """The message."""
    verdicts = [f"{one.mark} {one.word}: {one.title} ({one.detail})" for one in told.lines]
    worst = [f"{one.title}: {one.worst}" for one in told.lines if one.worst]
    changed = [f"{short}: {answer}" for short, answer in told.changed]
    findings = [f"{short}: {answer}" for short, answer in told.findings]
    about = f"{told.period}, {told.about}. {told.coverage}"
    return {
        "text": _fallback(told.headline, [about, *verdicts, *changed, *findings]),
        "blocks": [
            {"type": "header", "text": _text(told.headline, HEADER_LIMIT)},
            {"type": "context", "elements": [_text(about, TEXT_LIMIT)]},
            *(
                {"type": "section", "text": _text("\n".join(lines), TEXT_LIMIT)}
                for lines in (verdicts, worst, changed, findings)
                if lines
            ),
        ],
    }


def _text(value: str, limit: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": words.shorten(value, limit), "emoji": False}


def _fallback(headline: str, lines: Iterable[str]) -> str:
    """For notifications, and for chats that know no blocks: a block of code interprets nothing."""
    code = words.shorten("\n".join(lines).translate(_ESCAPED), _FALLBACK_LIMIT)
    return f"{headline.translate(_ESCAPED)}\n```\n{code}\n```"


def post(message: dict[str, Any], webhook: Webhook) -> None:
    """Post a message.

    Raises:
        SendError: It was not taken. The address is not told: who has it may post, too.
    """
    url = webhook.url.read("webhook")
    _check(url)
    try:
        context = ssl.create_default_context(
            cafile=None if webhook.ca_file is None else str(webhook.ca_file)
        )
        with (
            httpx.Client(
                verify=context, timeout=webhook.timeout_seconds, follow_redirects=False
            ) as client,
            client.stream("POST", url, json=message) as answer,
        ):
            said = next(answer.iter_bytes(_ANSWER_BYTES), b"")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = words.line(str(error).replace(url, "its address") or type(error).__name__)
        raise SendError(f"webhook: {reason}") from None
    if not answer.is_success:
        told = words.line(said.decode(errors="replace").replace(url, "its address"))
        raise SendError(f"webhook: it answered {answer.status_code} {told}".rstrip())


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SendError("webhook: the address is none") from None
    if parts.scheme == "https" and host:
        return
    if parts.scheme == "http" and is_loopback(host):
        return
    raise SendError("webhook: the address is not https, and not of this machine")
