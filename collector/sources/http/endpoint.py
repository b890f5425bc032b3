"""An HTTP endpoint inside or beside a JVM: its URL, who asks there, and an answer within bounds."""

import io
import socket
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import httpx

from collector.errors import (
    ConfigError,
    CredentialsError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.settings import Secret
from collector.sources.http import Endpoint
from lakehouse.tables.strict_files import UnreadableFileError, read_certificates

_MEANINGS: Final = {
    404: "there is nothing at that path; correct the URL's path",
    405: "it does not allow {method} there; allow {method} in the proxy, or correct the URL's path",
    407: "a proxy wants a login of its own; set the URL of {what} itself",
    408: "it waited too long for the request; check the network to it",
    429: "it limits requests; raise its limit, or read less often",
    500: "it failed; read its log",
    501: "it does not support {method}; correct the URL",
    502: "a proxy got no usable answer from it; check that it runs",
    503: "it is overloaded or not up, or so says a proxy; check that it runs",
    504: "a proxy got no answer from it in time; check that it runs",
}
"""By status (RFC 9110, RFC 6585): its meaning, and what to do."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_UNPACKED: Final = ("", "identity")


class Reply(NamedTuple):
    """An answer.

    Attributes:
        kind: Its content type.
        body: Its body.
        is_framed: A length or chunks show where the body ends. Otherwise the connection ends it,
            and a body that was cut short looks like a whole one.
    """

    kind: str
    body: bytes
    is_framed: bool


class TooMuchError(SourceError):
    """The answer is longer than we take, or takes longer than we wait: ask for less."""


class TooSlowError(TooMuchError, SourceTimeoutError):
    """The answer did not end in time."""


class HttpEndpoint:
    """One endpoint, asked by one connection that is kept.

    Args:
        what: What answers there, such as ``Jolokia``, for messages.
        section: Its section of the configuration; the password is read again at each connect.
        key: The section's key, for messages.
        params: Added to every request's query.

    Attributes:
        where: What answers and where, for messages.
        max_bytes: The longest answer that is taken.

    Raises:
        ConfigError: The URL is none of http or https, or there are no certificates in the file.
    """

    max_bytes: ClassVar[int] = 64 << 20  # more than the beans of 100,000 partitions take

    def __init__(
        self, what: str, section: Endpoint, key: str, params: dict[str, str] | None = None
    ) -> None:
        self._what, self._section = what, section
        self._url = _parse_url(section.url, key)
        self.where = f"{what} of {self._url.netloc.decode('ascii')}"
        self._secret = Secret(section.password_file, section.password_env)
        self._context = _context(self._url, section.ca_file, key)
        self._params = params
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Give up the connection; the endpoint may be asked again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()  # a call that was left behind ends with its next byte

    def ask(self, method: str, path: str = "", **request: Any) -> Reply:
        """Ask, at the URL or a path below it.

        Raises:
            TooMuchError: The answer is too long.
            TooSlowError: It comes too slowly.
            SourceError: It has another status than 200, or is compressed.
        """
        timeout = self._section.timeout.seconds
        end = time.monotonic() + timeout  # httpx bounds each read, not their sum
        client = self._client = self._client or self._open()
        with client.stream(method, self._url.join(path), **request) as response:
            _acknowledge(response)
            self._check_status(response)
            self._check_packing(response)
            body = first_bytes(response.iter_raw(), self.max_bytes, end)
        if len(body) > self.max_bytes:
            most = f"{self.max_bytes >> 20} MiB"
            raise TooMuchError(f"{self.where}: the answer is longer than {most}; is that a broker?")
        if time.monotonic() > end:
            raise TooSlowError(f"{self.where}: no answer within {timeout:g} s, only a part of one")
        headers = response.headers
        is_framed = "content-length" in headers or "transfer-encoding" in headers
        return Reply(headers.get("content-type", ""), body, is_framed)

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        if status == 401:
            raise CredentialsError(f"{self.where}: {self._refusal()}")
        if status == 403:
            raise SourceRefusedError(
                f"{self.where}: it forbids the request (status 403); allow this host and user there"
            )
        if status in _MEANINGS:
            meaning = _MEANINGS[status].format(method=response.request.method, what=self._what)
        elif place := _location(response):
            meaning = f"it redirects to {place}; redirects are not followed: correct the URL"
        else:
            meaning = f"{self._what} does not answer so; correct the URL"
        raise SourceError(f"{self.where}: it answers with status {status}: {meaning}")

    def _check_packing(self, response: httpx.Response) -> None:
        packing = response.headers.get("content-encoding", "")
        if packing not in _UNPACKED:  # what unpacks may be endless
            raise SourceError(
                f"{self.where}: its answer is compressed ({packing!a:.40}), which the request ruled"
                " out; turn compression off in the proxy"
            )

    def _refusal(self) -> str:
        if self._section.user is None:
            return "it wants a user and a password; give user and password_file"
        file, variable = self._secret.file, self._secret.variable
        way = f"password_file ({file})" if variable is None else f"password_env ({variable})"
        return f"it refused the user or the password; correct user and {way}"

    def _open(self) -> httpx.Client:
        user = self._section.user
        auth = None if user is None else (user, self._secret.read(self.where, user))
        return httpx.Client(
            auth=auth,
            params=self._params,
            headers={"Accept-Encoding": "identity"},
            timeout=1.1 * self._section.timeout.seconds,  # by then the worker has given up
            verify=self._context,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
            trust_env=False,  # the password is not for a proxy
            event_hooks={"response": [_keep_location]},
        )


def first_bytes(pieces: Iterable[bytes], most: int, until: float) -> bytes:
    """Return the body of an answer, or a part of it if it is too long or comes too slowly.

    Args:
        pieces: The pieces of the body.
        most: The longest body that is taken, in bytes; the result may be a piece longer.
        until: When the time is over, by ``time.monotonic``.
    """
    body = io.BytesIO()
    for piece in pieces:
        if body.write(piece) and (body.tell() > most or time.monotonic() > until):
            break
    return body.getvalue()


def _keep_location(response: httpx.Response) -> None:
    # httpx parses the header of each redirect, and fails at what is not an address.
    response.extensions["location"] = response.headers.pop("location", "")


def _location(response: httpx.Response) -> str | None:
    """Return where a redirect points, without what may be secret, as one short printable word."""
    location = response.extensions["location"]
    if response.status_code not in _REDIRECTS or not location:
        return None
    try:
        place = response.request.url.join(location)
        shown = str(place.copy_with(userinfo=b"", query=None, fragment=None))
    except (httpx.InvalidURL, ValueError):  # UnicodeError is one
        return "an address that is not a URL"
    return f"{shown[:120]!a}"


def _acknowledge(response: httpx.Response) -> None:
    # Java's HTTP server writes head and body one by one and waits with the second until the first
    # was acknowledged, which Linux puts off by 40 ms: 45 ms for an answer, not 4.
    if hasattr(socket, "TCP_QUICKACK"):
        tcp = response.extensions["network_stream"].get_extra_info("socket")
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _parse_url(text: str, key: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ConfigError(
            f"{key}.url: give http://HOST:PORT/PATH or https://..., and the user as user, the"
            " password by password_file"
        )
    return url


def _context(url: httpx.URL, ca_file: Path | None, key: str) -> ssl.SSLContext:
    if url.scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used, and without trusted CAs
    try:
        return ssl.create_default_context(cadata=read_certificates(ca_file))
    except UnreadableFileError as error:
        raise ConfigError(f"{key}.ca_file: {error}") from None
    except OSError as error:  # an SSLError is one too
        raise ConfigError(
            f"{key}.ca_file: {ca_file} holds no certificates that can be read:"
            f" {error.strerror or error}"
        ) from None
