"""An HTTP endpoint inside or beside a JVM: its URL, who asks there, and an answer within bounds."""

import socket
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import httpx

from collector.config.schema import Endpoint
from collector.config.secrets import Secret
from collector.errors import (
    ConfigError,
    CredentialsError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)


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

    def ask(self, method: str, path: str = "", **request: Any) -> tuple[str, bytearray]:
        """Ask, at the URL or a path below it, and return the answer's content type and body.

        Raises:
            TooMuchError: The answer is too long.
            TooSlowError: It comes too slowly.
            SourceError: It has another status than 200.
        """
        timeout = self._section.timeout.seconds
        end = time.monotonic() + timeout  # httpx bounds each read, not their sum
        client = self._client = self._client or self._open()
        with client.stream(method, self._url.join(path), **request) as response:
            _acknowledge(response)
            self._check_status(response.status_code)
            body = first_bytes(response.iter_raw(), self.max_bytes, end)
        if len(body) > self.max_bytes:
            most = f"{self.max_bytes >> 20} MiB"
            raise TooMuchError(f"{self.where}: the answer is longer than {most}; is that a broker?")
        if time.monotonic() > end:
            raise TooSlowError(f"{self.where}: no answer within {timeout:g} s, only a part of one")
        return response.headers.get("content-type", ""), body

    def _check_status(self, status: int) -> None:
        if status == 401:
            raise CredentialsError(f"{self.where}: {self._refusal()}")
        if status == 403:
            raise SourceRefusedError(
                f"{self.where}: it forbids us to ask; allow this host in the agent's policy"
            )
        if status != 200:
            raise SourceError(
                f"{self.where}: it answers with status {status} and not as {self._what} does; is"
                " the URL that of the agent itself?"
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
            headers={"Accept-Encoding": "identity"},  # what unpacks may be endless
            timeout=1.1 * self._section.timeout.seconds,  # by then the worker has given up
            verify=self._context,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
            trust_env=False,  # the password is not for a proxy
        )


def first_bytes(pieces: Iterable[bytes], most: int, until: float) -> bytearray:
    """The body of an answer; of one that is longer than we take, or comes too slowly, a part.

    Args:
        pieces: What comes.
        most: The longest that is taken, in bytes; what is returned may be a piece longer.
        until: When the time is over, by ``time.monotonic``.
    """
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > most or time.monotonic() > until:
            break
    return body


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
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an SSLError is one too
        raise ConfigError(
            f"{key}.ca_file: {ca_file} holds no certificates that can be read:"
            f" {error.strerror or error}"
        ) from None
