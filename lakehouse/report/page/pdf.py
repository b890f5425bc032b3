"""The page as a PDF: printed by a Chromium of this machine, without network."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lakehouse.errors import PrintError

BROWSER_SETTING: Final = "JMXLAKE_CHROMIUM"
"""Environment variable with the path of the browser, if it is not on PATH."""

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS: Final = 120

_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers give it 64 MB
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    # The page makes no request. For any other request host names do not resolve, and addresses use
    # a proxy that does not exist.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
)
_MAGIC: Final = b"%PDF-"


def browser(environment: Mapping[str, str] = os.environ) -> str:
    """Path of the Chromium that prints.

    Args:
        environment: Has ``JMXLAKE_CHROMIUM`` and ``PATH``.

    Raises:
        PrintError: Chromium is not installed.
    """
    named = environment.get(BROWSER_SETTING)
    for name in [named] if named else BROWSERS:
        if program := shutil.which(name, path=environment.get("PATH")):
            return program
    if named:
        raise PrintError(f"{BROWSER_SETTING}: {named} is not a program that can be started")
    raise PrintError(
        "a PDF needs Chromium, and there is none on PATH: install the package chromium, or "
        f"set {BROWSER_SETTING} to a Chromium or Chrome"
    )


def printed(html: str, program: str, seconds: float = SECONDS) -> bytes:
    """Return a page as PDF, on the paper size of its style (A4).

    Args:
        html: The page.
        program: The browser, see ``browser``.
        seconds: Timeout.

    Raises:
        PrintError: The browser failed, or did not print in time.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-print-") as folder:
        page, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
            program,
            *_FLAGS,
            *["--no-sandbox"] * (os.geteuid() == 0),  # Chromium refuses to start with one as root
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={target}",
            page.as_uri(),
        ]
        messages = _run(command, seconds)
        content = target.read_bytes() if target.is_file() else b""
    if not content.startswith(_MAGIC):
        raise PrintError(f"{program} printed nothing: {_reason(messages)}")
    return content


def _run(command: Sequence[str], seconds: float) -> str:
    """Run the browser until it and all its children have ended; return its standard error."""
    program = command[0]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise PrintError(f"{program} cannot be started: {error.strerror}") from error
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired as error:
        raise PrintError(f"{program} did not print within {seconds:g} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _reason(messages: str) -> str:
    """Return the last error in the browser's messages, without the place in its sources."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "FATAL" in line] or lines
    return errors[-1].rpartition("] ")[2][:300] if errors else "it gave no reason"
