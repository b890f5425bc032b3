"""Named steps of the delivery protocol, at each of which an agent can be killed.

The agent's own code is not touched: in the process that is to die, the methods and functions that
are the steps are wrapped. What a step is called follows from what is called.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sqlite3
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import deltalake

from collector.delivery.bronze_table import BronzeTable
from collector.spool.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Functions and not their names, so that mypy says where one is called otherwise by now.
_STEPS: Final[dict[type, tuple[Callable[..., Any], ...]]] = {
    Spool: (
        Spool.append, Spool.seal, Spool.reach, Spool.acknowledge, Spool.waiting, Spool.recover,
        Spool.remember, Spool.forget_sets, Spool.begin_anew,
    ),
    BronzeTable: (BronzeTable.load, BronzeTable.last_number, BronzeTable.append),
}  # fmt: skip
_TABLE: Final = ("__init__", "update_incremental", "transaction_version", "create")


class Step(NamedTuple):
    """A step, and how often it is passed before it is the last thing that happens."""

    name: str
    hit: int = 1


class Tripwires:
    """Counts the steps that are passed; ends the process by SIGKILL at the one that is armed.

    Args:
        armed: Where to die; None: nowhere.
        survey: Where the counts are kept, after each new step.
    """

    def __init__(self, armed: Step | None, survey: Path | None = None) -> None:
        self._armed, self._survey = armed, survey
        self._counts: Counter[str] = Counter()
        self._inside = threading.local()

    def install(self) -> None:
        """Wrap the steps, in this process and for as long as it lives."""
        for owner, steps in _STEPS.items():
            for plain in steps:
                step = f"{owner.__name__.lower()} {plain.__name__}"
                setattr(owner, plain.__name__, self._wrapped(step, plain))
        Spool.__init__ = self._wrapped("spool open", Spool.__init__)  # type: ignore[method-assign]
        self._wrap_sqlite()
        for name in _TABLE:
            own = deltalake.DeltaTable.__dict__[name]
            plain = own.__func__ if isinstance(own, classmethod | staticmethod) else own
            wrapped = self._wrapped(f"table {name.strip('_')}", plain)
            kind = type(own) if plain is not own else (lambda given: given)
            setattr(deltalake.DeltaTable, name, kind(wrapped))
        write = self._wrapped("table write", deltalake.write_deltalake)
        for module in [one for key, one in sys.modules.items() if key.startswith("collector.")]:
            if getattr(module, "write_deltalake", None) is deltalake.write_deltalake:
                module.write_deltalake = write  # type: ignore[attr-defined]

    def pass_(self, name: str) -> None:
        """A step is passed."""
        self._counts[name] += 1
        if self._armed == (name, self._counts[name]):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._survey is not None:
            self._survey.write_text(json.dumps(self._counts))

    def _wrapped(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def step(*args: Any, **kwargs: Any) -> Any:
            self.pass_(f"before {name}")
            outer, self._inside.step = getattr(self._inside, "step", None), [name, 0]
            try:
                return plain(*args, **kwargs)
            finally:
                self._inside.step = outer
                self.pass_(f"after {name}")

        return step

    def _wrap_sqlite(self) -> None:
        """Before each statement, and once more after the last: nothing can be between others."""
        tripwires, connect = self, sqlite3.connect

        class TrippedConnection(sqlite3.Connection):
            def execute(self, *args: Any) -> sqlite3.Cursor:
                tripwires.pass_statement(args[0])
                return super().execute(*args)

            def executescript(self, script: str) -> sqlite3.Cursor:
                tripwires.pass_statement("SCRIPT")
                return super().executescript(script)

        sqlite3.connect = functools.partial(connect, factory=TrippedConnection)  # type: ignore[assignment]

    def pass_statement(self, sql: str) -> None:
        """A statement of SQLite, named by the step of which it is the n-th, and by its verb.

        Those that only read are no steps: after them all is as before them.
        """
        inside, verb = getattr(self._inside, "step", None), sql.split(maxsplit=1)[0]
        if inside is not None and verb != "SELECT":
            inside[1] += 1
            self.pass_(f"{inside[0]}, statement {inside[1]}: {verb}")
