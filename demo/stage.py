"""Where scenarios play, and how they wait: for conditions, and at the earliest until a second."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from threading import Event
from typing import TYPE_CHECKING

from demo.cluster import Cluster
from demo.errors import DemoError
from demo.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIMIT_SECONDS = 240.0
"""How long a condition may take: ten times as long as on a busy machine."""

_POLL_SECONDS = 0.1


class CurtainError(Exception):
    """The run was called off; a scenario lets this pass."""


class Cue(Enum):
    """A moment of one scenario for which others wait."""

    CLIENTS_ENDED = "the throttled clients ended"
    CAUGHT_UP = "group warehouse caught up"
    UPLOADED = "uploads caught up"
    WRITERS_READY = "the writers of transfers connected"
    KILLED = "broker 2 was killed"
    DELETION_HELD = "deletion was held up"
    BACK = "broker 2 came back"
    FROZEN = "the log of clicks was frozen"


def _no_cue_given() -> dict[Cue, Future[None]]:
    return {cue: Future() for cue in Cue}


@dataclass(frozen=True)
class Stage:
    """A cluster, a notebook for the truth, one clock and one set of cues for all scenarios."""

    cluster: Cluster
    truth: Truth
    began: float = field(default_factory=time.monotonic)
    curtain: Event = field(default_factory=Event)
    cues: dict[Cue, Future[None]] = field(default_factory=_no_cue_given)

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

    def expect(
        self,
        happened: Callable[[], bool],
        what: str,
        seconds: float = LIMIT_SECONDS,
        poll: float = 2 * _POLL_SECONDS,
    ) -> None:
        """Ask every ``poll`` seconds until it happened.

        Raises:
            DemoError: It did not happen in time.
        """
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                raise DemoError(f"Waited {seconds:.0f} s in vain: {what}.")
            self.wait(poll)

    def give(self, cue: Cue) -> None:
        """Let those go on that wait for it."""
        self.cues[cue].set_result(None)

    def call_off(self, cues: Iterable[Cue]) -> None:
        """Tell those that wait for any of these which was not given that it will never be."""
        for cue in cues:
            if not self.cues[cue].done():
                self.cues[cue].set_exception(DemoError(f"It never came that {cue.value}."))

    def is_over(self, cue: Cue) -> bool:
        """Whether a cue was given or called off."""
        return self.cues[cue].done()

    def wait_over(self, *cues: Cue) -> None:
        """Wait until each cue was given or called off."""
        while not all(map(self.is_over, cues)):
            self.wait(_POLL_SECONDS)

    def wait_for(self, cue: Cue) -> None:
        """Wait for a cue.

        Raises:
            DemoError: It was called off.
        """
        self.wait_over(cue)
        self.cues[cue].result()
