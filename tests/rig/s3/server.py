"""A real S3 server on loopback, for as long as a test or a benchmark needs it."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Self

from demo.errors import DemoError
from demo.launcher import Launcher, kill, last_lines
from demo.ports import free_ports, is_listening
from tests.rig.s3.install import versitygw

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

REGION = "us-east-1"
_ACCESS_KEY = "jmxlake"
_START_SECONDS = 60


class S3Server:
    """versitygw over a folder; a bucket is a folder in it, and conditional puts are real.

    Attributes:
        endpoint: Its URL.
        options: Storage options of delta-rs for it.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.options = options(self.endpoint, _ACCESS_KEY, secrets.token_hex(20))
        self._buckets, self._metadata = folder / "buckets", folder / "metadata"
        self._log, self._port = folder / "versitygw.log", port
        self._launcher = Launcher()
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, buckets: tuple[str, ...] = ("lake",)) -> Self:
        """Start a server whose buckets and log lie in a folder.

        Args:
            folder: Where it keeps everything; it is made where it is missing.
            buckets: Buckets to begin with.

        Raises:
            DemoError: It could not be built or started.
        """
        server = cls(folder, free_ports(1)[0])
        for bucket in buckets:
            server.bucket(bucket)
        server.resume()
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()
        self._launcher.close()

    def url(self, path: str) -> str:
        """The URL of ``bucket/path``, as delta-rs writes it."""
        return f"s3://{path}"

    def bucket(self, name: str) -> Path:
        """Make a bucket where it is missing; the folder that holds its objects."""
        path = self._buckets / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def options_through(self, endpoint: str) -> dict[str, str]:
        """Storage options for the same server by another endpoint: a proxy's."""
        return {**self.options, "aws_endpoint": endpoint}

    def pause(self) -> None:
        """End the process; what was put stays, and nobody listens."""
        if self._process is not None:
            kill(self._process)  # asked to end, it waits for idle connections
            self._process = None

    def resume(self) -> None:
        """Start the process, at the same port as before.

        Raises:
            DemoError: It could not be built or started.
        """
        self._metadata.mkdir(parents=True, exist_ok=True)
        command = [
            str(versitygw()),
            *("--port", f"127.0.0.1:{self._port}", "--region", REGION, "--keep-alive", "--quiet"),
            # Apart from the objects, because not every file system has extended attributes.
            *("posix", "--sidecar", str(self._metadata), str(self._buckets)),
        ]
        self._process = self._launcher.start(
            command,
            self._log,
            {
                "ROOT_ACCESS_KEY": _ACCESS_KEY,
                "ROOT_SECRET_KEY": self.options["aws_secret_access_key"],
            },
        )
        self._wait(self._process)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _START_SECONDS
        while not is_listening(self._port):
            if process.poll() is not None or time.monotonic() > until:
                self.pause()
                raise DemoError(f"versitygw did not start; its log ends: {last_lines(self._log)}")
            time.sleep(0.02)


def options(endpoint: str, access_key: str, secret_key: str) -> dict[str, str]:
    """Storage options of delta-rs for an S3 server on this machine."""
    return {
        "aws_endpoint": endpoint,
        "aws_access_key_id": access_key,
        "aws_secret_access_key": secret_key,
        "aws_region": REGION,
        "aws_allow_http": "true",
    }
