"""Sections of the details: a title, a line, and tables, or a reason below the minimum coverage.

``details`` makes them folds of the page.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple, Self

from lakehouse.core import display
from lakehouse.report import evidence, figures, tables
from lakehouse.report.evidence import Evidence
from lakehouse.report.facts.fields import Question
from lakehouse.report.figures import Facts, Row
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.tables.table_spec import Listing, TableSpec


class Detail(NamedTuple):
    """A fold of the page.

    Attributes:
        anchor: Its fragment, behind ``d-``.
        title: A noun phrase.
        line: The section in one line; names from outside are isolated.
        is_open: Whether it is open at first.
        tables: Tables, the worst rows first; none below the floor of coverage.
        note: How to read them; may be empty.
    """

    anchor: str
    title: str
    line: str
    is_open: bool
    tables: tuple[Listing, ...]
    note: str


class Section(NamedTuple):
    """A section, in the module of its tables.

    Attributes:
        anchor: The anchor of its fold.
        title: A noun phrase.
        detail: Makes the fold of the facts; None: the report does not have it.
    """

    anchor: str
    title: str
    detail: Callable[[Facts], Detail | None]


class Claim(NamedTuple):
    """A statement on the rows of a table.

    Attributes:
        table: The table; its bad rows are counted by their names.
        figure: The figure of the worst row, in words.
        verb: Predicate of the subjects.
        worst: Word before the row with the greatest figure.
        is_own: Whether it counts the subjects of the question.
    """

    table: TableSpec
    figure: Callable[[Row], str]
    verb: str = "affected"
    worst: str = "worst"
    is_own: bool = True


class Part(NamedTuple):
    """The statements of one question.

    Attributes:
        line: In one line.
        tables: Tables; the empty ones are left out.
        notes: Sentences on them.
    """

    line: str
    tables: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, said: Iterable[str | None], tables: Iterable[Listing] = (), notes: Iterable[str] = ()
    ) -> Self:
        """Return the part of some statements; the empty ones are left out."""
        return cls(_plain("; ".join(filter(None, said))), tuple(tables), tuple(notes))


def section(anchor: str, title: str, *parts: Callable[[Facts], Part | None]) -> Section:
    """Return a section of one or more questions.

    Args:
        anchor: The anchor of its fold.
        title: A noun phrase.
        parts: The statements of each question; None: the report does not have it.
    """
    return Section(
        anchor, title, lambda facts: _detail(anchor, title, [one(facts) for one in parts])
    )


def _detail(anchor: str, title: str, stated: Iterable[Part | None]) -> Detail | None:
    """Return the fold of some parts; a reason that several of them have is written once."""
    parts = [one for one in stated if one is not None]
    if not parts:
        return None
    lines = dict.fromkeys(one for part in parts for one in part.line.split("; ") if one)
    tables = tuple(table for part in parts for table in part.tables if table.rows)
    notes = [note for part in parts for note in part.notes]
    if tables:
        notes.insert(0, note_of(anchor))
    line = "; ".join(lines)
    line = f"{line[:1].upper()}{line[1:]}"
    return Detail(
        anchor, title, line, is_open=False, tables=tables, note=" ".join(filter(None, notes))
    )


def note_of(anchor: str) -> str:
    """Return the note of page.yaml on a section; empty without any."""
    return str(figures.declared("page.yaml")["notes"].get(anchor, ""))


def counted(
    question: Question, *claims: Claim, more: Iterable[TableSpec] = ()
) -> Callable[[Facts], Part]:
    """Return the part of a question that counts its bad subjects.

    Args:
        question: The question.
        claims: Statements; the first is made even if nothing is bad, and its subjects are the
            question's.
        more: Further tables.
    """
    return lambda facts: part(facts, question, claims, more)


def part(
    facts: Facts, question: Question, claims: Sequence[Claim], more: Iterable[TableSpec] = ()
) -> Part:
    """Return the statements of a question, or why there is none."""
    decided = evidence.decide(facts, question)
    if not decided.is_answered:
        return Part.of([decided.reason])
    rows = [_with_budgets(facts, question, claim.table.all_rows(facts)) for claim in claims]
    said = [
        _claim(claim, own, decided, is_first=not nth)
        for nth, (claim, own) in enumerate(zip(claims, rows, strict=True))
    ]
    hidden = [*map(_plain, evidence.hidden_texts(facts, question).values())]
    if hidden:
        quiet = not claims[0].table.bad_rows(rows[0])
        said = [*hidden, *said[1:]] if quiet else [*said, *hidden]
    if decided.reason:  # bad is stated however little was observed
        said.append(f"{decided.reason[:1].lower()}{decided.reason[1:]}")
    else:
        said.append(decided.coverage_clause(question.noun))
    tables = [
        claim.table.listing(facts, own, decided) for claim, own in zip(claims, rows, strict=True)
    ]
    tables += [table.listing(facts) for table in more]
    return Part.of(said, tables)


def _claim(claim: Claim, rows: Sequence[Row], decided: Evidence, *, is_first: bool) -> str:
    table = claim.table
    bad = table.bad_rows(rows)
    number = len(table.subjects(bad))
    noun = table.noun
    known = decided.subjects_known if claim.is_own else None
    if not number:
        return f"{_of(0, known, noun)} {claim.verb}" if is_first else ""
    least = "at least " if not decided.is_whole else ""
    worst = f"{claim.worst} {table.columns[0].cell(bad[0]).sentence}"
    return f"{least}{_of(number, known, noun)} {claim.verb}; {worst}, {claim.figure(bad[0])}"


def _of(number: int, known: int | None, noun: str) -> str:
    """Return a number of subjects, and their total if it is known."""
    if known is None or known < number:
        return display.plural(number, noun)
    return f"{number:,} of {display.plural(known, noun)}"


def _plain(sentence: str) -> str:
    """Return a sentence as a part of a line: with plain spaces, without its full stop."""
    return display.untied(sentence).strip().removesuffix(".")


def _with_budgets(facts: Facts, question: Question, rows: Iterable[Row]) -> list[Row]:
    """Return rows with the greatest share of an error budget that their subject used."""
    used = _used(facts, question)
    keyed = [(row, used.get(evidence.name_of(row, question.names))) for row in rows]
    return [row if share is None else {**row, "used": share} for row, share in keyed]


def _used(facts: Facts, question: Question) -> Mapping[tuple[Any, ...], float]:
    found: dict[tuple[Any, ...], float] = {}
    wanted = set(question.judged)
    for objective in facts.get("objectives") or ():
        if wanted & set(objective.get("metrics") or ()):
            for subject in objective.get("subjects") or ():
                if (share := subject.get("used")) is not None:
                    key = evidence.name_of(subject, question.names)
                    found[key] = max(share, found.get(key, share))
    return found


_FIRST: Final = (
    "availability", "loss", "lag", "throttling", "tiered", "requests", "replication", "risks",
    "disk", "owners",
)  # fmt: skip
_LAST: Final = ("own-metrics", "coverage", "incidents")
"""Anchors in order; other sections are between."""

_OPEN_IF_BLIND: Final = "coverage"
"""Its table has the errors of the agents."""


@functools.cache
def sections() -> tuple[Section, ...]:
    """Return every ``Section`` that a module of this package has, in the order of the page."""
    modules = (
        import_module(f"{tables.__name__}.{one.name}") for one in iter_modules(tables.__path__)
    )
    found = {
        value for module in modules for value in vars(module).values() if isinstance(value, Section)
    }
    return tuple(sorted(found, key=lambda one: (_place(one.anchor), one.anchor)))


def _place(anchor: str) -> int:
    if anchor in _FIRST:
        return _FIRST.index(anchor)
    return len(_FIRST) + (1 + _LAST.index(anchor) if anchor in _LAST else 0)


def details(facts: Facts, summary: Summary) -> tuple[Detail, ...]:
    """Return the folds of a report, in their order; owners only where they are known.

    Args:
        facts: The report's facts.
        summary: The report in short.
    """
    with display.shown_in(display.zone_of(facts)):
        found = [one.detail(facts) for one in sections()]
    return tuple(
        one._replace(is_open=summary.is_blind and one.anchor == _OPEN_IF_BLIND)
        for one in found
        if one is not None
    )
