"""What the demo did and when: truth.json, with which the report is compared."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from demo.clock import now_iso

if TYPE_CHECKING:
    from pathlib import Path


class Truth:
    """Facts gathered by scenarios that run at the same time.

    Attributes:
        facts: Single facts by name.
        lists: Lists of facts by name.
        missed: Why each scenario that could not be played was not, by its name.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.facts: dict[str, Any] = {"format": 1}
        self.lists: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.missed: dict[str, str] = {}

    def set(self, name: str, fact: object) -> None:
        """Note one fact."""
        with self._lock:
            self.facts[name] = fact

    def add(self, name: str, **fact: object) -> None:
        """Note one more of a kind."""
        with self._lock:
            self.lists[name].append(fact)

    def did(self, what: str) -> None:
        """Note a deed, and tell people of it."""
        self.add("deeds", at=now_iso(), what=what)
        print(f"  {what}", flush=True)

    def miss(self, scenario: str, reason: str) -> None:
        """Note that a scenario could not be played, and tell people; the first reason stays."""
        with self._lock:
            if scenario in self.missed:
                return
            self.missed[scenario] = reason
        print(f"  Scenario {scenario} could not be played: {reason}", flush=True)

    def write(self, path: Path) -> None:
        """Write everything noted so far; a reader never sees half of it."""
        with self._lock:
            missed = [{"scenario": name, "reason": why} for name, why in self.missed.items()]
            text = json.dumps({**self.facts, **self.lists, "scenarios_missed": missed}, indent=1)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(text + "\n")
        unfinished.replace(path)
