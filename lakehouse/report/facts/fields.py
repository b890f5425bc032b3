"""Fields of the facts' records: their bounds, their JSON and its keys; and questions on them.

Declarations that name keys of a record are checked when they are imported.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import fsum
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    Protocol,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)


class Bounds(NamedTuple):
    """A figure and its bounds; None: not known.

    A field ``name_us`` is three keys in JSON: ``name_us``, ``name_low_us`` and ``name_high_us``; a
    field ``name`` is ``name``, ``name_low`` and ``name_high``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float | None) -> Self:
        """Return all three, multiplied by a factor; a factor of None makes all unknown."""
        if factor is None:
            return type(self)()
        return type(self)(*(None if figure is None else figure * factor for figure in self))


NONE: Final = Bounds(0, 0, 0)
"""The increase of a counter that certainly did not rise."""


def to_json(value: Any) -> Any:
    """Return a record, or a list of records, as JSON: a key for each field, in order."""
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if not hasattr(value, "_asdict"):
        return value
    found: dict[str, Any] = {}
    for own_name, field in value._asdict().items():
        name = key_of(own_name)
        if isinstance(field, Bounds):
            found |= bounds_json(name, field)
        else:
            found[name] = to_json(field)
    return found


def key_of(name: str) -> str:
    """Return the key of a field in JSON: ``from_`` is ``from``, which Python reserves."""
    return name.removesuffix("_")


Known = float | None
"""A figure; None: it is not known."""

Metrics = Mapping[str, Mapping[str, Any]]
"""Sums of one subject, by metric."""


class Figure(Protocol):
    """A figure of gold, see ``gold_figures``."""

    @property
    def metric(self) -> str:
        """The metric that it is a figure of."""

    def figure(self, rows: Metrics) -> Any:
        """Return the figure of one subject, whose sums these are."""


class Means(NamedTuple):
    """The meaning of a field.

    Attributes:
        text: The meaning, a line without a full stop. For a nested record the subject of its
            fields.
        of: The figure of gold of the field; None: its section computes it.
        column: The name in CSV if it differs from the field's name. For a nested record the prefix
            of its columns, which may be empty.
        json: A more precise type in JSON. None: the type of the field.
    """

    text: str
    of: Figure | None = None
    column: str | None = None
    json: Any = None


TOPIC: Final = Means("topic")
PARTITION: Final = Means("partition")
USER: Final = Means("authenticated principal; empty: the client has none, or the quota no user")
CLIENT_ID: Final = Means("client id; empty: the client has none, or the quota no client id")
GROUP: Final = Means("consumer group")
SOURCE: Final = Means("broker, controller or other source of metrics")
PARTITIONS: Final = Means("number of partitions")
OBJECTIVE: Final = Means("name of the objective", column="objective")
TITLE: Final = Means("title of the objective")
TARGET: Final = Means("share of time that must be good")
VERDICT: Final = Means("met, missed, uncertain or no_data")
INTERVAL_VERDICT: Final = Means(
    "verdict if unknown time can be good or bad; empty: the same as verdict"
)
OWNED: Final = {
    "team": Means("team that owns it, by the owners file"),
    "owner": Means("owner, by the owners file"),
    "tier": Means("tier, by the owners file"),
}
LABELS: Final = tuple(OWNED)
UNKNOWN: Final = Means("unknown time, microseconds")


class Declared:
    """Base of records that are only declared: another module makes their JSON.

    A record can extend others. Their fields come first, in the reverse order of the bases.
    """


class Named(Declared):
    """The names of a subject; names of other kinds are None."""

    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]


def names_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names in a row, as ``Named`` declares them."""
    return {name: row.get(name) for name in fields_of(Named)}


class Field(NamedTuple):
    """A field of a record: its type in JSON, and its meaning."""

    kind: Any
    means: Means


class Column(NamedTuple):
    """A column of CSV: its name and meaning, and the dotted path of its value in a row."""

    name: str
    means: str
    path: str


@functools.cache
def fields_of(record: Callable[..., Any]) -> Mapping[str, Field]:
    """Return the fields of a record by their keys in JSON, in order.

    A field without ``Means`` has an empty text. A name that is a keyword of Python ends with ``_``.
    """
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        means = next((one for one in notes if isinstance(one, Means)), Means(""))
        found[key_of(name)] = Field(kind if means.json is None else means.json, means)
    return found


def keys(name: str) -> tuple[str, str, str]:
    """Return the names in JSON and CSV of a field of ``Bounds``: the figure and its two bounds."""
    stem = name.removesuffix("_us")
    unit = name[len(stem) :]
    return name, f"{stem}_low{unit}", f"{stem}_high{unit}"


def three(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a field of ``Bounds``, each with its meaning."""
    texts = (text, f"lower bound of {name}", f"upper bound of {name}")
    yield from zip(keys(name), texts, strict=True)


@functools.cache
def columns(record: Callable[..., Any], *names: str) -> tuple[Column, ...]:
    """Return the columns of a record in CSV.

    A field of ``Bounds`` is three columns. The fields of a nested record follow with its name
    before theirs. Lists of records have no column: each is a file of its own.

    Args:
        record: A named tuple.
        names: Only these fields, in this order; by default all.
    """
    fields = fields_of(record)
    return tuple(one for name in names or fields for one in _columns(name, fields[name]))


def _columns(name: str, field: Field) -> Iterator[Column]:
    text, column = field.means.text, field.means.column
    shown = name if column is None else column
    if field.kind is Bounds:
        for (own, meaning), key in zip(three(shown, text), keys(name), strict=True):
            yield Column(own, meaning, key)
    elif inner := nested(field.kind):
        for one in columns(inner):
            names, texts = filter(None, (shown, one.name)), filter(None, (text, one.means))
            yield Column("_".join(names), ": ".join(texts), f"{name}.{one.path}")
    elif not is_rows(field.kind):
        yield Column(shown, text, name)


def nested(kind: Any) -> Callable[..., Any] | None:
    """Return the record of a type that is a record, or a record or None; None: other types."""
    if hasattr(kind, "_fields") or (isinstance(kind, type) and issubclass(kind, Declared)):
        return kind if kind is not Bounds else None
    return next(filter(None, map(nested, _union(kind))), None)


def is_rows(kind: Any) -> bool:
    """Return whether a type is a list of anything but text, or such a list or None."""
    if get_origin(kind) is list:
        return get_args(kind) != (str,)
    return any(map(is_rows, _union(kind)))


def _union(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def total(bounds: Iterable[Bounds]) -> Bounds:
    """Return a sum; its bound is unknown if the bound of a part is unknown."""
    parts = zip(NONE, *bounds, strict=True)
    return Bounds(*(None if None in each else fsum(each) or 0 for each in parts))


def bounds_in(row: Mapping[str, Any], name: str) -> Bounds:
    """Return a field of ``Bounds`` of a row as JSON."""
    return Bounds(*map(row.get, keys(name)))


def bounds_json(name: str, value: Bounds) -> dict[str, Any]:
    """Return a field of ``Bounds`` as JSON."""
    return dict(zip(keys(name), value, strict=True))


_OPEN_TYPES: Final = (dict, Any)
"""Types of fields whose own keys no record declares."""


@functools.cache
def keys_of(record: type) -> dict[str, Any]:
    """Return the JSON keys of a record, each with the record of its value; None: it has none."""
    found: dict[str, Any] = dict.fromkeys(LABELS)
    for name, (kind, _) in fields_of(record).items():
        if kind is Bounds:
            found |= dict.fromkeys(keys(name))
        else:
            found[name] = _record_of(kind)
    return found


def check_keys(record: type, paths: Iterable[str]) -> None:
    """Check that dotted paths are keys of a record or of the records within it.

    Raises:
        TypeError: One is not; with its name and the record's.
    """
    for path in paths:
        first, _, rest = path.partition(".")
        if first not in keys_of(record):
            raise TypeError(f"{record.__name__} does not have the key {first!r}")
        if rest and (inner := keys_of(record)[first]) is not Any:
            if inner is None:
                raise TypeError(f"{record.__name__}.{first} does not have keys: {path!r}")
            check_keys(inner, [rest])


def record_at(record: Any, path: str) -> Any:
    """Return the record of the rows at a dotted path within a record.

    Raises:
        KeyError: There is no such key.
    """
    for key in path.split("."):
        record = keys_of(record)[key]
    return record


def metrics_of(record: type) -> Iterator[str]:
    """Yield the metrics of gold that the fields of a record are figures of."""
    for _, means in fields_of(record).values():
        if means.of is not None:
            yield from (means.of.metric, *getattr(means.of, "more", ()))


def _record_of(kind: Any) -> Any:
    """Return the record of a value or of the rows of a list; ``Any``: its keys are open."""
    if kind in _OPEN_TYPES or get_origin(kind) is dict:
        return Any
    found = map(_record_of, get_args(kind))
    return nested(kind) or next((one for one in found if one), None)


class Rows(NamedTuple):
    """Figures of a section's rows.

    Attributes:
        record: The record of a row.
        path: Place of the rows in the facts.
        keys: Keys of the figures in JSON; none: its rows as they are.
    """

    record: type
    path: str
    keys: tuple[str, ...] = ()


class Check(NamedTuple):
    """A comparison of a component's own count with the series of partitions, in seconds.

    A broker's count and the series of its partitions are different beans, and an exporter can hide
    one of them.

    Attributes:
        name: Its sentence in page.yaml.
        concerns: Metrics of objectives that hidden series would make worse.
        counted: The component's own count.
        shown: The sum over series.
        scale: Factor from the series' unit to seconds.
        each_counts_all: Whether every row counts the whole cluster.
    """

    name: str
    concerns: tuple[str, ...]
    counted: Rows
    shown: Rows
    scale: float = 1.0
    each_counts_all: bool = False


class Question(NamedTuple):
    """A question of a report: which facts and which metrics answer it.

    Attributes:
        name: Its name in JSON.
        read: The metric that must have been read; ``any``: any family.
        gold: Tables of gold that the answer uses; empty: any.
        bad: It is bad if one of these figures is above zero.
        judged: Metrics whose objectives are on the same subjects.
        noun: A subject.
        names: Keys that name a subject.
        subjects: Its subjects, with the figure that is null without data. None: the subjects of the
            objectives on ``judged``.
        counted: Path of the number of subjects; empty: ``subjects`` are counted.
        not_applicable: Reason why it does not apply without a subject; empty: it always applies.
        checks: Counts that must agree.
        fact: Path that is null if nothing is known.
        needs_rows: Whether an empty list there means unknown.
        has_figures: Whether rows, neither good nor bad, are stated at any coverage.
        open: Figures that leave it partly known while they are null.
        unknown: Unknown time of its rows: time without a value, even if its family was read.
        family: The family to enable; empty: the first that reads the metric.
        shows: Metrics with figures in the section: its records, and patterns of others.
        section: Anchor of the section that states it; empty: none.
    """

    name: str
    read: str
    gold: tuple[str, ...] = ()
    bad: tuple[Rows, ...] = ()
    judged: tuple[str, ...] = ()
    noun: str = ""
    names: tuple[str, ...] = ()
    subjects: Rows | None = None
    counted: str = ""
    not_applicable: str = ""
    checks: tuple[Check, ...] = ()
    fact: str = ""
    needs_rows: bool = False
    has_figures: bool = False
    open: tuple[Rows, ...] = ()
    unknown: tuple[Rows, ...] = ()
    family: str = ""
    shows: tuple[type | str, ...] = ()
    section: str = ""

    @property
    def metrics(self) -> frozenset[str]:
        """Metrics with figures in its section, as patterns."""
        records = (one for one in self.shows if not isinstance(one, str))
        texts = (one for one in self.shows if isinstance(one, str))
        return frozenset((*texts, *(metric for one in records for metric in metrics_of(one))))

    def check(self) -> None:
        """Check that the keys it names are keys of the records.

        Raises:
            TypeError: One is not.
        """
        compared = [rows for check in self.checks for rows in (check.counted, check.shown)]
        subjects = [] if self.subjects is None else [self.subjects]
        for rows in (*self.bad, *self.open, *self.unknown, *compared, *subjects):
            check_keys(rows.record, rows.keys)
