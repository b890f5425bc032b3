"""A JVM with a Jolokia agent, read over HTTP: one POST brings a whole family. No JVM starts here.

Facts about Jolokia (2.5.1): NaN, infinity and null all arrive as null, and count as NaN;
a server-side limit on collections cuts an answer short without a word, so it is refused.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final

import httpx

from collector.config.secrets import Secret
from collector.errors import ConfigError, CredentialsError, SourceError, SourceRefusedError
from collector.sources.bulk.jolokia_response import parse_answers
from collector.sources.bulk.source import BulkSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from collector.config.schema import Jolokia
    from collector.sources.identity import Answers, Expected, Question

_OPTIONS: Final = {
    "ignoreErrors": "true",  # an attribute that fails has an error in its place
    "includeRequest": "false",
    "maxDepth": "3",  # bean, attribute, what failed: no attribute that we read is a tree
}


_MAX_BYTES: Final = 64 * 1024 * 1024
"""More than the beans of 100,000 partitions take."""


class JolokiaSource(BulkSource):
    """A broker, controller or client JVM that is read by its Jolokia agent.

    Args:
        expected: Who should answer.
        jolokia: How to reach it. The password is read again whenever we ask who answers.

    Raises:
        ConfigError: The URL is none of http or https, or there are no certificates in the file.
    """

    def __init__(self, expected: Expected, jolokia: Jolokia) -> None:
        self._url = _parse_url(jolokia.url)
        where = f"Jolokia of {self._url.netloc.decode('ascii')}"
        super().__init__(where, expected, jolokia.timeout.seconds, jolokia.password_file)
        self._user = jolokia.user
        self._secret = Secret(jolokia.password_file, jolokia.password_env)
        self._context = _context(self._url, jolokia.ca_file)
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        super().close()
        client, self._client = self._client, None
        if client is not None:
            client.close()  # a call that was left behind ends with its next byte

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        requests = _requests(questions)
        if self._client is None:
            requests.append({"type": "version"})
        return parse_answers(self._post(requests), requests, self._where)

    def _post(self, requests: list[dict[str, Any]]) -> bytearray:
        end = time.monotonic() + self._timeout_seconds  # httpx bounds each read, not their sum
        client = self._client = self._client or self._open_client()
        with client.stream("POST", self._url, json=requests) as response:
            _acknowledge(response)
            self._check_status(response)
            body = bytearray()
            for piece in response.iter_raw():
                body += piece
                if len(body) > _MAX_BYTES or time.monotonic() > end:
                    raise SourceError(
                        f"{self._where}: the answer is longer than {_MAX_BYTES >> 20} MiB, or than"
                        f" {self._timeout_seconds:g} s; is that a broker?"
                    )
            return body

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 401:
            raise CredentialsError(f"{self._where}: {self._refusal()}")
        if status == 403:
            raise SourceRefusedError(
                f"{self._where}: it forbids us to ask; allow this host in the agent's policy"
            )
        if status != 200:
            raise SourceError(
                f"{self._where}: it answers with status {status} and not as Jolokia does; is the"
                " URL that of the agent itself?"
            )

    def _refusal(self) -> str:
        if self._user is None:
            return "it wants a user and a password; give user and password_file"
        file, variable = self._secret.file, self._secret.variable
        way = f"password_file ({file})" if variable is None else f"password_env ({variable})"
        return f"it refused the user or the password; correct user and {way}"

    def _open_client(self) -> httpx.Client:
        auth = None
        if self._user is not None:
            auth = httpx.BasicAuth(self._user, self._secret.read(self._where, self._user))
        return httpx.Client(
            auth=auth,
            params=_OPTIONS,
            headers={"Accept-Encoding": "identity"},  # what unpacks may be endless
            timeout=1.1 * self._timeout_seconds,  # of one read; by then the worker has given up
            verify=self._context,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=None),
            trust_env=False,  # the password is not for a proxy
        )


def _acknowledge(response: httpx.Response) -> None:
    # Java's HTTP server writes head and body one by one and waits with the second until the first
    # was acknowledged, which Linux puts off by 40 ms: 45 ms for an answer, not 4.
    if hasattr(socket, "TCP_QUICKACK"):
        tcp = response.extensions["network_stream"].get_extra_info("socket")
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _requests(questions: Iterable[Question]) -> list[dict[str, Any]]:
    attributes: dict[str, list[str]] = {}
    for pattern, attribute in questions:
        attributes.setdefault(pattern, []).append(attribute)
    return [
        {"type": "read", "mbean": pattern, "attribute": names}
        for pattern, names in attributes.items()
    ]


def _parse_url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise ConfigError(
            "source.jolokia.url: give http://HOST:PORT/jolokia/ or https://..., and the user as"
            " user, the password by password_file"
        )
    return url


def _context(url: httpx.URL, ca_file: Path | None) -> ssl.SSLContext:
    if url.scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used, and without trusted CAs
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # an SSLError is one too
        raise ConfigError(
            f"source.jolokia.ca_file: {ca_file} holds no certificates that can be read:"
            f" {error.strerror or error}"
        ) from None
