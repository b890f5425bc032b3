"""A message to a chat: JSON in Slack's format, posted to a secret address.

Names come from clients of the cluster. In a chat's own markup a name could notify the whole room
(``<!channel>``) or disguise a link, so names are plain text, and escaped code in the text for
clients without blocks.
"""

import ssl
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from lakehouse.core import display
from lakehouse.errors import SendError
from lakehouse.report.send.digest import Digest
from lakehouse.report.send.settings import Webhook, is_loopback

HEADER_LIMIT: Final = 150
TEXT_LIMIT: Final = 3_000
_FALLBACK_LIMIT: Final = 12_000
_RESPONSE_BYTES: Final = 300
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})


def payload(digest: Digest) -> dict[str, Any]:
    """The message."""
    verdicts = [
        f"{verdict.mark} {verdict.word}: {verdict.title} ({verdict.counts}; {verdict.target})"
        for verdict in digest.verdicts
    ]
    worst = [f"{one.title}: {one.lowest}" for one in digest.verdicts if one.lowest]
    changed = [f"{short}: {answer}" for short, answer in digest.changed]
    findings = [f"{short}: {answer}" for short, answer in digest.findings]
    about = f"{digest.period}, {digest.about}. {digest.coverage}"
    return {
        "text": _fallback(digest.headline, [about, *verdicts, *changed, *findings]),
        "blocks": [
            {"type": "header", "text": _text(digest.headline, HEADER_LIMIT)},
            {"type": "context", "elements": [_text(about, TEXT_LIMIT)]},
            *(
                {"type": "section", "text": _text("\n".join(lines), TEXT_LIMIT)}
                for lines in (verdicts, worst, changed, findings)
                if lines
            ),
        ],
    }


def _text(value: str, limit: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": display.shorten(value, limit), "emoji": False}


def _fallback(headline: str, lines: Iterable[str]) -> str:
    """The message for notifications and for chats without blocks, in a block of code."""
    code = display.shorten("\n".join(lines).translate(_ESCAPED), _FALLBACK_LIMIT)
    return f"{headline.translate(_ESCAPED)}\n```\n{code}\n```"


def post(message: dict[str, Any], webhook: Webhook) -> None:
    """Post a message.

    Raises:
        SendError: It was not accepted. The address is not in the error, because it is a secret.
    """
    url = webhook.url.read("webhook")
    _check(url)
    try:
        context = ssl.create_default_context(cafile=webhook.ca_file)
        with httpx.stream(
            "POST", url, json=message, verify=context, timeout=webhook.timeout_seconds
        ) as response:
            content = next(response.iter_bytes(_RESPONSE_BYTES), b"")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = display.line(str(error).replace(url, "its address") or type(error).__name__)
        raise SendError(f"webhook: {reason}") from None
    if not response.is_success:
        text = display.line(content.decode(errors="replace").replace(url, "its address"))
        raise SendError(f"webhook: it answered {response.status_code} {text}".rstrip())


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SendError("webhook: the address is not a URL") from None
    is_safe = bool(host) if parts.scheme == "https" else is_loopback(host)
    if parts.scheme not in {"http", "https"} or not is_safe:
        raise SendError("webhook: the address is neither https nor on this machine")
