"""``jmxlake-agent support-bundle``: one file for a bug report, without secrets."""

import io
import json
import os
import platform
import shlex
import signal
import subprocess
import tarfile
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import click
import msgspec

from collector.cli.command import CONFIG, guarded
from collector.config.schema import Config
from collector.delivery.store import scrubbed
from collector.errors import JmxlakeError
from collector.sources.java import jvm
from collector.telemetry import logs
from lakehouse.tables.strict_files import UnreadableFileError, read_text

_LOG_LINES = 2_000
_SECONDS = 5.0
_DUMP_BYTES = 10_000_000
_PAGES = ("metrics", "healthz", "readyz")
_COARSE = 0.1  # resolution of file timestamps


@click.command("support-bundle")
@CONFIG
@click.option(
    "--unit", default="jmxlake-agent", show_default=True,
    help="systemd unit whose journal to include.",
)  # fmt: skip
@click.argument("file", type=click.Path(path_type=Path), required=False)
def support_bundle(path: Path, unit: str, file: Path | None) -> None:
    """Collect versions, logs and state for a bug report.

    FILE is a new tar.gz file. Default: jmxlake-support-TIME.tar.gz in this folder. It contains
    versions, the configuration, the last lines of the journal and responses of the health server.
    It also contains a list of the spool's files, thread stacks, and the heads of crash reports. It
    does not contain secrets, but it can contain topic names from the log: check it before you send
    it.
    """
    file = file or Path(time.strftime("jmxlake-support-%Y%m%dT%H%M%SZ.tar.gz", time.gmtime()))

    def work(config: Config) -> None:
        health = {f"health/{name}.txt": _asked(config, name) for name in _PAGES}
        parts = {
            "versions.txt": _versions(), "config.json": _configuration(config),
            "journal.txt": _journal(unit), "spool.txt": _beside(config.spool.path),
            "threads.txt": _threads(config.spool.path), **health,
        }  # fmt: skip
        try:
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as bundle:
                for name, text in parts.items():
                    info = tarfile.TarInfo(f"jmxlake-support/{name}")
                    content = text.encode(errors="backslashreplace")
                    info.size, info.mode, info.mtime = len(content), 0o600, int(time.time())
                    bundle.addfile(info, io.BytesIO(content))
        except OSError as error:
            raise JmxlakeError(f"{file}: {error.strerror}. Choose a new file") from None
        click.echo(f"{file}: {', '.join(parts)}")

    guarded(path, work)


def _versions() -> str:
    packages = sorted(f"{package.name} {package.version}" for package in distributions())
    return "\n".join([platform.platform(), f"Python {platform.python_version()}", *packages])


def _configuration(config: Config) -> str:
    shown = msgspec.to_builtins(config, enc_hook=str)
    # The value of an option can be a password.
    names = [option.partition("=")[0] for option in shlex.split(config.java.options)]
    return json.dumps(_without_secrets({**shown, "java": {"options": names}}), indent=2)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_secrets(below) for below in value]
    return scrubbed(value, []) if isinstance(value, str) else value


def _journal(unit: str) -> str:
    command = ["journalctl", "--no-pager", "-o", "cat", "-u", unit, "-n", str(_LOG_LINES)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no journal: {error}"
    return ran.stdout or f"no journal: {ran.stderr}"


def _asked(config: Config, name: str) -> str:
    health = config.health
    try:
        with closing(HTTPConnection(health.host, health.port, timeout=_SECONDS)) as connection:
            connection.request("GET", f"/{name}")
            return connection.getresponse().read().decode()
    except (OSError, HTTPException) as error:
        return f"no response: {error}"


def _beside(spool: Path) -> str:
    files = ((file.name, file.stat()) for file in sorted(spool.parent.glob(f"{spool.name}*")))
    lines = [f"{name} {stat.st_size} B, mode {stat.st_mode & 0o777:o}" for name, stat in files]
    lines += [f"{report.path.name}: {report.cause}" for report in jvm.all_crashes(spool)]
    return "\n".join(lines)


def _threads(spool: Path) -> str:
    """Return the thread stacks that the running agent writes at SIGUSR1."""
    file, asked = logs.threads_file(spool), time.time() - _COARSE
    try:
        holder = _holder(spool.with_name(f"{spool.name}.lock"))
        os.kill(holder, signal.SIGUSR1)
        while time.time() < asked + _SECONDS:
            if file.exists() and file.stat().st_mtime >= asked:
                return read_text(file, _DUMP_BYTES)
            time.sleep(0.05)
    except (OSError, UnreadableFileError) as error:
        return f"no threads: {error}"
    return f"no threads: process {holder} did not write a file within {_SECONDS:g} s"


def _holder(lock: Path) -> int:
    """Return the ID of the process that the kernel lists as the owner of the spool's lock.

    Raises:
        OSError: No process holds the lock.
    """
    inode = lock.stat().st_ino
    for line in Path("/proc/locks").read_text("ascii").splitlines():
        _, kind, *_, pid, place, _, _ = line.split()
        if kind == "FLOCK" and place.endswith(f":{inode}"):
            return int(pid)
    raise ProcessLookupError("no agent uses this spool")
