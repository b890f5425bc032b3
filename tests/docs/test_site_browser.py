"""The documentation in a real Chromium, which requests only this host.

Requests to other hosts go to a proxy of the test, which records and rejects them.
"""

from __future__ import annotations

import re
import shutil
import socketserver
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.browser, pytest.mark.reads]

PAGES = ("index.html", "quickstart.html", "report.html", "reference/metrics.html")
HOST = re.compile(r"(?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})", re.IGNORECASE)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Suppress the log."""


class _Recorder(socketserver.StreamRequestHandler):
    """Recording proxy: ``server.asked`` has the first line of each request."""

    def handle(self) -> None:
        self.server.asked.append(self.rfile.readline(4096).decode("ascii", "replace"))
        self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def asked(folder: Path, page: str, profile: Path) -> set[str]:
    """Return the hosts in the folder's files that Chromium requests for a page."""
    binary = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if binary is None:
        pytest.skip("no browser is installed; on Debian: apt-get install chromium")
    recorder = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Recorder)
    recorder.daemon_threads = True
    recorder.asked = []
    files = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    with serving(recorder) as proxy, serving(files) as port:
        subprocess.run(
            [
                binary, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", f"--proxy-server=http://127.0.0.1:{proxy}",
                f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom",
                f"http://127.0.0.1:{port}/{page}",
            ],
            capture_output=True, timeout=180, check=True,
        )  # fmt: skip
    text = "\n".join(
        path.read_text("utf-8", "replace")
        for path in folder.rglob("*") if path.suffix in {".html", ".js", ".css", ".svg"}
    )  # fmt: skip
    named = {host.lower() for host in HOST.findall(text)}
    # Chromium sends requests of its own: only hosts in the files count.
    return {host for host in named if any(host in line.lower() for line in recorder.asked)}


@pytest.mark.parametrize("page", PAGES)
def test_page_requests_no_other_host(site: Path, tmp_path: Path, page: str) -> None:
    assert (site / page).is_file()
    assert asked(site, page, tmp_path / "profile") == set()


def test_request_to_other_host_is_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "x.html").write_text('<!doctype html><img src="http://elsewhere.example/x.png">')
    assert asked(folder, "x.html", tmp_path / "profile") == {"elsewhere.example"}
