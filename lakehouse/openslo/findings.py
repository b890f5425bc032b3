"""What is to be said of a file, and where in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["invalid", "unsupported", "note"]
"""Worst first: it is not OpenSLO v1; it is, but jmxlake cannot do it; it has no effect here."""

KINDS: Final[tuple[Kind, ...]] = ("invalid", "unsupported", "note")
EXIT_CODES: Final[dict[Kind, int]] = {"invalid": 1, "unsupported": 3, "note": 0}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say.

    Attributes:
        kind: How bad it is.
        file: The file as it was named.
        line: Line, from 1.
        column: Column, from 1.
        path: Where it stands in the document, such as ``spec.objectives[0].target``.
        message: What is so, and what to write instead.
    """

    kind: Kind
    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        what = f"{self.path}: {self.message}" if self.path else self.message
        return f"{where}: {self.kind}: {what}"


def worst(found: list[Finding]) -> Kind | None:
    """The worst kind among findings."""
    kinds = {one.kind for one in found}
    return next((kind for kind in KINDS if kind in kinds), None)
