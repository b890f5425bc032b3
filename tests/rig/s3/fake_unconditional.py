"""A fake S3 store in memory that ignores on which condition something is put.

So do some appliances, and Google's store through its S3 interface. Real ones are not to be had
here; the real server of the other tests does what is asked of it.
"""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from http import HTTPStatus

_TIME = "2026-01-01T00:00:00.000Z"
_HTTP_TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


class FakeUnconditionalStore(http.server.ThreadingHTTPServer):
    """Takes every put, at a free port and on threads of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def options(self) -> dict[str, str]:
        """Storage options of delta-rs."""
        return {
            "aws_endpoint": f"http://127.0.0.1:{self.server_address[1]}", "aws_allow_http": "true",
            "aws_access_key_id": "fake", "aws_secret_access_key": "fake", "aws_region": "fake",
        }  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeUnconditionalStore

    def log_message(self, *_: Any) -> None: ...

    def do_PUT(self) -> None:
        self.server.objects[self._key] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"", ETag='"fake"')

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            after = query.get("start-after", [""])[0]
            self._answer(200, self._listed(query.get("prefix", [""])[0], after))
        elif (found := self.server.objects.get(self._key)) is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif (asked := self.headers.get("Range")) is None:
            self._answer(200, found, ETag='"fake"')
        else:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            at = (
                (int(first), min(int(last), len(found) - 1))
                if first
                else (len(found) - int(last), len(found) - 1)
            )
            span = f"bytes {at[0]}-{at[1]}/{len(found)}"
            self._answer(206, found[at[0] : at[1] + 1], ETag='"fake"', Content_Range=span)

    do_HEAD = do_GET  # noqa: N815 - the base class calls it so

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).strip("/").partition("/")[2]

    def _listed(self, prefix: str, after: str) -> bytes:
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_TIME}</LastModified>"
            f"<ETag>&quot;fake&quot;</ETag><Size>{len(what)}</Size></Contents>"
            for key, what in sorted(self.server.objects.copy().items())
            if key.startswith(prefix) and key > after
        )
        return (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()
        )

    def _answer(self, status: HTTPStatus | int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Last_Modified": _HTTP_TIME, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
