"""HTTP endpoint of a JVM or a server: URL, login, and responses with limits on size and time."""

import io
import socket
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import httpx

from collector import errors
from collector.settings import Secret
from collector.sources.transports import HttpTransport
from lakehouse.tables.strict_files import UnreadableFileError, read_certificates

_MEANINGS: Final = {
    404: "the path does not exist; correct the URL's path",
    405: "{method} is not allowed; allow {method} in the proxy, or correct the URL's path",
    407: "a proxy requires a separate login; set the URL of {what}",
    408: "the request took too long; check the network",
    429: "the server limits requests; raise the limit, or scrape less often",
    500: "the server failed; check its log",
    501: "{method} is not supported; correct the URL",
    502: "a proxy received an invalid response; check that {what} is running",
    503: "the server or a proxy is overloaded or down; check that {what} is running",
    504: "a proxy received no response in time; check that {what} is running",
}
"""Meaning and fix by status (RFC 9110, RFC 6585)."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_UNPACKED: Final = ("", "identity")


class Reply(NamedTuple):
    """A response.

    Attributes:
        kind: Content type.
        body: Body.
        is_framed: A length or chunks mark the end of the body. Otherwise the end of the connection
            does, and a truncated body looks complete.
    """

    kind: str
    body: bytes
    is_framed: bool


class TooMuchError(errors.SourceError):
    """The response is too long or too slow; request less."""


class TooSlowError(TooMuchError, errors.SourceTimeoutError):
    """The response did not end in time."""


class HttpEndpoint:
    """One endpoint with one persistent connection.

    Args:
        what: Name of the server, such as ``Jolokia``, for error texts.
        section: Settings. The password is read again at each connect.
        key: The section's key, for error texts.
        params: Query parameters of every request.

    Attributes:
        where: Server and address, for error texts.
        max_bytes: Size limit of a response.

    Raises:
        ConfigError: The URL is not http or https, or the CA file has no certificates.
    """

    max_bytes: ClassVar[int] = 64 << 20  # enough for the MBeans of 100,000 partitions

    def __init__(
        self, what: str, section: HttpTransport, key: str, params: dict[str, str] | None = None
    ) -> None:
        self._what, self._section = what, section
        self._url = _parse_url(section.url, key)
        self.where = f"{what} of {self._url.netloc.decode('ascii')}"
        self._secret = Secret(section.password_file, section.password_env)
        self._context = _context(self._url, section.ca_file, key)
        self._params = params
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Close the connection. The endpoint can be used again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()  # an abandoned call ends with its next byte

    def ask(self, method: str, path: str = "", **request: Any) -> Reply:
        """Send a request to the URL or a path below it.

        Raises:
            TooMuchError: The response is too long.
            TooSlowError: The response is too slow.
            SourceError: The status is not 200, or the response is compressed.
        """
        timeout = self._section.timeout.seconds
        end = time.monotonic() + timeout  # httpx limits each read, not their sum
        client = self._client = self._client or self._open()
        with client.stream(method, self._url.join(path), **request) as response:
            _acknowledge(response)
            self._check_status(response)
            self._check_packing(response)
            body = first_bytes(response.iter_raw(), self.max_bytes, end)
        if len(body) > self.max_bytes:
            most = f"{self.max_bytes >> 20} MiB"
            raise TooMuchError(f"{self.where}: the answer is longer than {most}; check the URL")
        if time.monotonic() > end:
            raise TooSlowError(f"{self.where}: no answer within {timeout:g} s, only a part")
        headers = response.headers
        is_framed = "content-length" in headers or "transfer-encoding" in headers
        return Reply(headers.get("content-type", ""), body, is_framed)

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        if status == 401:
            raise errors.CredentialsError(f"{self.where}: {self._refusal()}")
        if status == 403:
            raise errors.SourceRefusedError(
                f"{self.where}: the request is forbidden (status 403); allow this host and user"
            )
        if status in _MEANINGS:
            meaning = _MEANINGS[status].format(method=response.request.method, what=self._what)
        elif place := _location(response):
            meaning = f"redirects are not followed; correct the URL, which redirects to {place}"
        else:
            meaning = f"{self._what} does not use this status; correct the URL"
        raise errors.SourceError(f"{self.where}: status {status}: {meaning}")

    def _check_packing(self, response: httpx.Response) -> None:
        packing = response.headers.get("content-encoding", "")
        if packing not in _UNPACKED:  # unpacked, it could be endless
            raise errors.SourceError(
                f"{self.where}: the answer is compressed ({packing!a:.40}), although the request"
                " forbids it; disable compression in the proxy"
            )

    def _refusal(self) -> str:
        if self._section.user is None:
            return "a login is required; set user and password_file"
        file, variable = self._secret.file, self._secret.variable
        place = f"password_file ({file})" if variable is None else f"password_env ({variable})"
        return f"the user or the password was refused; correct user and {place}"

    def _open(self) -> httpx.Client:
        user = self._section.user
        auth = None if user is None else (user, self._secret.read(self.where, user))
        return httpx.Client(
            auth=auth,
            params=self._params,
            headers={"Accept-Encoding": "identity"},
            timeout=1.1 * self._section.timeout.seconds,  # the worker's time limit comes first
            verify=self._context,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
            trust_env=False,  # the password is not for a proxy
            event_hooks={"response": [_keep_location]},
        )


def first_bytes(pieces: Iterable[bytes], most: int, until: float) -> bytes:
    """Return the body of a response, or a part of it if it is too long or too slow.

    Args:
        pieces: Pieces of the body.
        most: Size limit in bytes. The result can be one piece longer.
        until: Deadline by ``time.monotonic``.
    """
    body = io.BytesIO()
    for piece in pieces:
        if body.write(piece) and (body.tell() > most or time.monotonic() > until):
            break
    return body.getvalue()


def _keep_location(response: httpx.Response) -> None:
    # httpx parses the header of each redirect and fails if it is not an address.
    response.extensions["location"] = response.headers.pop("location", "")


def _location(response: httpx.Response) -> str | None:
    """Return the target of a redirect as one short printable word without secrets."""
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
    # Java's HTTP server sends the body only after the acknowledgement of the head, which Linux
    # delays by 40 ms. A response then takes 45 ms instead of 4 ms.
    if hasattr(socket, "TCP_QUICKACK"):
        tcp = response.extensions["network_stream"].get_extra_info("socket")
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _parse_url(text: str, key: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise errors.ConfigError(
            f"{key}.url: must be http://HOST:PORT/PATH or https://...; set user and password_file"
            " for a login"
        )
    return url


def _context(url: httpx.URL, ca_file: Path | None, key: str) -> ssl.SSLContext:
    if url.scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # unused, without trusted CAs
    try:
        return ssl.create_default_context(cadata=read_certificates(ca_file))
    except UnreadableFileError as error:
        raise errors.ConfigError(f"{key}.ca_file: {error}") from None
    except OSError as error:  # SSLError is a subclass
        raise errors.ConfigError(
            f"{key}.ca_file: {ca_file} has no readable certificates: {error.strerror or error}"
        ) from None
