"""A message to a chat: JSON that is posted to a secret address."""

import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from lakehouse.core import display
from lakehouse.errors import SendError
from lakehouse.report.send.settings import Webhook, is_loopback, trust

_RESPONSE_BYTES: Final = 300


def post(message: dict[str, Any], webhook: Webhook) -> None:
    """Post a message: only to this address, directly, and within the timeout as a whole.

    Raises:
        SendError: It was not accepted. The address is not in the error, because it is a secret.
    """
    url = webhook.url.read("webhook")
    _check(url)
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
        target=_run, args=(call, client, url, message), daemon=True, name="webhook"
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


def _run(call: Future[str], client: httpx.Client, url: str, message: dict[str, Any]) -> None:
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


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SendError("webhook: the address is not a URL") from None
    is_safe = bool(host) if parts.scheme == "https" else is_loopback(host)
    if parts.scheme not in {"http", "https"} or not is_safe:
        raise SendError("webhook: the address is neither https nor on this machine")
