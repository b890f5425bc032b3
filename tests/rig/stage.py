"""Where faults are staged: rigs, a real S3 server, small disks; what each fault came to."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from demo.agents import script
from demo.errors import DemoError
from tests.rig.rig import Rig
from tests.rig.s3.proxy import FaultyProxy
from tests.rig.s3.server import S3Server
from tests.rig.told import read
from tests.rig.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.rig.rig import Process


class NotPermittedError(DemoError):
    """This machine does not let us do what the fault needs."""


@dataclass
class Outcome:
    """What a fault came to.

    Attributes:
        verdicts: Result of the check of each lake.
        kills: How often an agent was killed.
        says: Kinds of events and outcomes that the lakes tell.
        flaws: What did not go as it was meant to, apart from the verdicts.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    kills: int = 0
    says: set[str] = field(default_factory=set)
    flaws: list[str] = field(default_factory=list)

    def expect(self, holds: object, otherwise: str) -> None:
        """Note a flaw unless something holds."""
        if not holds:
            self.flaws.append(otherwise)

    def ask(self, rig: Rig, source: str = "broker-1", *, tail_lost: bool = False) -> Verdict:
        """Check a rig's lake."""
        verdict = rig.verdict(source, tail_lost=tail_lost)
        told = read(str(rig.lake), source)
        self.verdicts.append(verdict)
        self.says |= {event.kind for event in told.events}
        self.says |= {one.outcome for accounts in told.accounts.values() for one in accounts}
        self.expect(verdict.samples, "nothing was read")
        self.flaws += [] if verdict.good else [str(verdict)]
        return verdict

    def must_end(self, process: Process, code: int = 0, where: str = "a life") -> None:
        """Wait for a life and note a flaw if it ended otherwise."""
        found = process.wait()
        self.kills += found == -9
        ending = process.log()[-500:]
        self.expect(found == code, f"{where} ended with {found}, not {code}: {ending}")


class Stage:
    """A folder in which a fault is staged, and everything in it ended afterwards.

    Args:
        folder: Where; it is made anew.
        seed: Of all that is left to chance.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.dice = random.Random(seed)
        self._things = ExitStack()

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._things.close()

    def rig(self, name: str = "rig", **settings: Any) -> Rig:
        """An agent with a spool and a lake of its own."""
        rig = Rig(self.folder / name, **{"seed": self.seed, **settings})
        return self._things.enter_context(rig)

    def s3(self) -> tuple[S3Server, FaultyProxy]:
        """A real S3 server, and a proxy before it."""
        server = self._things.enter_context(S3Server.start(self.folder / "s3"))
        return server, self._things.enter_context(FaultyProxy(server.endpoint))

    def s3_rig(self, server: S3Server, proxy: FaultyProxy, name: str, **settings: Any) -> Rig:
        """An agent whose lake is behind the proxy; the check reads the server's folder."""
        options = {
            **server.options_through(proxy.endpoint),
            "timeout": "1s",  # of one request: a server that says nothing is given up
            "max_retries": "1",
            "retry_timeout": "3s",
            **settings.pop("options", {}),
        }
        rig = self.rig(name, options=options, url=server.url(f"lake/{name}"), **settings)
        rig.lake = server.bucket("lake") / name
        return rig

    def maintain(self, server: S3Server, name: str) -> subprocess.Popen[bytes]:
        """``jmxlake maintain`` of an S3 rig's lake, every second until the stage is cleared."""
        options = self.folder / f"{name}-maintain.json"
        options.write_text(json.dumps(server.options), "utf-8")
        options.chmod(0o600)
        maintain = ("maintain", server.url(f"lake/{name}"), "--every", "1s")
        process = subprocess.Popen(
            [script("jmxlake"), *maintain, "--options-file", str(options)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._things.callback(_ended, process)
        return process

    @contextmanager
    def small_disk(self, name: str, size: str) -> Iterator[Path]:
        """A disk of its own, in memory.

        Raises:
            NotPermittedError: We may not mount.
        """
        folder = self.folder / name
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotPermittedError(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
