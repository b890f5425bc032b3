from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from demo.cluster import Cluster
from demo.errors import DemoError
from demo.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable


class CurtainError(Exception):
    """The run was called off; a scenario lets this pass."""


@dataclass(frozen=True)
class Stage:
    """Where scenarios play: a cluster, a notebook for the truth and one clock for all."""

    cluster: Cluster
    truth: Truth
    began: float = field(default_factory=time.monotonic)
    curtain: Event = field(default_factory=Event)

    def wait(self, seconds: float) -> None:
        """Wait; raises CurtainError as soon as the run is called off."""
        if self.curtain.wait(max(0.0, seconds)):
            raise CurtainError

    def wait_until(self, second: float) -> None:
        """Wait for a second of the run."""
        self.wait(self.began + second - time.monotonic())

    def before(self, second: float) -> bool:
        """Whether that second of the run is still to come; raises CurtainError like wait."""
        self.wait(0)
        return time.monotonic() < self.began + second

    def expect(self, happened: Callable[[], bool], what: str, seconds: float = 180) -> None:
        """Ask until it happened.

        Raises:
            DemoError: It did not happen in time.
        """
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                raise DemoError(f"Waited {seconds:.0f} s in vain: {what}.")
            self.wait(0.2)
