"""What is asked of a lake, and what was seen and found."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from lakehouse.doctor.finding import ORDER, Finding
from lakehouse.doctor.standing import Standing
from lakehouse.maintain.place import Place


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked at.

    Attributes:
        place: The lake.
        now: The instant, UTC.
        days: How far back.
        late: How long an agent may take to deliver.
        software: Version of this command.
        with_gold: Whether gold can be read from here.
    """

    place: Place
    now: dt.datetime
    days: int
    late: dt.timedelta
    software: str
    with_gold: bool = True

    @property
    def since(self) -> dt.datetime:
        """From when on."""
        return self.now - dt.timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that told something.

    Attributes:
        agent: Its id.
        sources: What it told of, each with its cluster.
        told: Until when; None where all of it is in the future.
        software: Its version, if its newest commits are known and tell.
    """

    agent: str
    sources: tuple[str, ...]
    told: dt.datetime | None
    software: str | None


@dataclass(slots=True)
class Diagnosis:
    """What was seen, and what was found."""

    question: Question
    tables: list[Standing] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def worst_first(self) -> list[Finding]:
        """The findings, in the order in which somebody should look at them."""
        return sorted(
            self.findings, key=lambda one: (ORDER.index(one.severity), one.check, one.where)
        )

    @property
    def good(self) -> bool:
        """Whether nobody needs to do anything."""
        return all(one.severity == "info" for one in self.findings)
