from __future__ import annotations

import http.client
import select
import time


class HttpPeer:
    """A tool that answers HTTP, over one connection that stays open.

    What comes is not even parsed: that is the work of whoever asked, and not counted here.
    """

    def __init__(
        self, name: str, port: int, path: str, *, body: bytes | None = None, pid: int | None = None
    ) -> None:
        self.name = name
        self.pid = pid
        self._path = path
        self._body = body
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def prepare(self) -> None:
        """Drop the connection if its server closed it while it waited for its turn."""
        sock = self._connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:  # there is no answer to come
            self._connection.close()
        if self._connection.sock is None:
            self._connection.connect()

    def scrape(self) -> None:
        self.read()

    def read(self) -> bytes:
        """The answer's body."""
        method = "GET" if self._body is None else "POST"
        self._connection.request(method, self._path, self._body)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != http.client.OK:
            raise RuntimeError(f"{self.name} answered {response.status}: {answer[:200]!r}")
        return answer

    def await_answer(self, seconds: float = 60) -> None:
        """Wait until its process listens."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
            else:
                return

    def close(self) -> None:
        self._connection.close()
