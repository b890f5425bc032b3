"""A fake of Prometheus's API: it knows the few queries that we ask, and can misbehave."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs

LOOKBACK: Final = 300.0
TARGET: Final = {"instance": "b-1:11001", "job": "kafka"}
Sample = tuple[str, tuple[tuple[str, str], ...]]

Fault = Callable[[str, dict[str, str]], tuple[int, str, bytes] | None]
"""Of a path and what is asked: status, content type and body to answer with; None: go on."""


@dataclass
class Scrape:
    """One that the fake made; without samples it failed."""

    at: float
    samples: dict[Sample, float]
    seconds: float = 0.1


@dataclass
class FakePrometheus:
    """A running fake; a context manager.

    Attributes:
        scrapes: What it kept, in order.
        target: Labels of the one target.
        fault: How it misbehaves.
        asked: What it was asked.
        headers: What came with it.
    """

    scrapes: list[Scrape]
    target: dict[str, str] = field(default_factory=lambda: dict(TARGET))
    fault: Fault = lambda path, asked: None  # noqa: ARG005
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                asked = {
                    key: one[0] for key, one in parse_qs(self.rfile.read(length).decode()).items()
                }
                fake.asked.append(asked)
                fake.headers.append(dict(self.headers))
                status, kind, body = fake.fault(self.path, asked) or fake.answer(self.path, asked)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        Handler.protocol_version = "HTTP/1.1"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.socket.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, asked: dict[str, str]) -> tuple[int, str, bytes]:
        if path.endswith("/series"):
            return success(self._series(asked["match[]"].partition("{")[0]))
        start, end, step = (float(asked[key]) for key in ("start", "end", "step"))
        found: dict[Sample, list[list[Any]]] = {}
        count = 0
        while (at := round(start + count * step, 3)) <= end:
            count += 1
            for series, value in self._at(asked["query"], at).items():
                found.setdefault(series, []).append([at, f"{value:.17g}"])
        return success({
            "resultType": "matrix",
            "result": [
                {"metric": {**({"__name__": name} if name else {}), **self.target, **dict(labels)},
                 "values": values}
                for (name, labels), values in found.items()
            ],
        })  # fmt: skip

    def _series(self, name: str) -> list[dict[str, str]]:
        if name == "up":
            return [{"__name__": "up", **self.target}] if self.scrapes else []
        every = {one for scrape in self.scrapes for one in scrape.samples}
        return [{"__name__": n, **self.target, **dict(labels)} for n, labels in every if n == name]

    def _at(self, query: str, at: float) -> dict[Sample, float]:
        seen = [one for one in self.scrapes if at - LOOKBACK < one.at <= at]
        if not seen:
            return {}
        last = seen[-1]
        if query.startswith("up{"):
            return {("up", ()): float(bool(last.samples))}
        if query.startswith("timestamp(up{"):
            return {("", ()): last.at}
        if query.startswith("scrape_duration_seconds{"):
            return {("scrape_duration_seconds", ()): last.seconds}
        if "timestamp(" in query:
            names = re.findall(r"timestamp\((\w+)\{", query)
            there = {name for name, _ in last.samples}
            return {("", (("name", one),)): last.at for one in names if one in there}
        (names,) = re.findall(r'__name__=~"([^"]*)"', query)
        wanted = set(names.split("|"))
        return {one: value for one, value in last.samples.items() if one[0] in wanted}


def success(data: Any, **more: Any) -> tuple[int, str, bytes]:
    return 200, "application/json", json.dumps({"status": "success", "data": data, **more}).encode()


def failure(status: int, error: str) -> tuple[int, str, bytes]:
    answer = {"status": "error", "errorType": "execution", "error": error}
    return status, "application/json", json.dumps(answer).encode()
