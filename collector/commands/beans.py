"""``jmxlake-agent beans``: what the catalogue says is read."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collector.commands.common import JSON, fail
from collector.errors import JmxlakeError

if TYPE_CHECKING:
    from collector.catalogue import Catalogue, Family, Metric

_BREAK = re.compile(r"(?<=[,:; ])")  # where a line may end: an object name has no spaces
_INDENT = "    "


@click.command(short_help="Print what is read: metrics, beans, units, versions.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="Take its catalogue.")
@click.option("--catalogue", type=click.Path(path_type=Path), help="Folder with further files.")
@click.option("--family", "wanted", help="Only this family.")
@JSON
def beans(path: Path | None, catalogue: Path | None, wanted: str | None, *, as_json: bool) -> None:
    """Print what is read: every metric, its bean, unit, proposal and first Kafka version."""
    try:
        loaded = _catalogue(path, catalogue)
        if wanted == "metadata_log" and path is None:
            # Where it is read, its metrics have the names of those that they replace.
            loaded = loaded.preferring(wanted)
        families = (_named(loaded, wanted),) if wanted else loaded.families
    except JmxlakeError as error:
        fail(error)
    if as_json:
        for family in families:
            for metric in family.metrics:
                click.echo(json.dumps(_row(family, metric)))
        return
    for family in families:
        _print_table(family)


def _catalogue(path: Path | None, folder: Path | None) -> Catalogue:
    from collector import planning
    from collector.catalogue import load
    from collector.config import load as load_config

    return planning.catalogue(load_config(path)) if path else load(folder)


def _named(loaded: Catalogue, wanted: str) -> Family:
    from difflib import SequenceMatcher

    def likeness(name: str) -> tuple[float, str]:
        return -SequenceMatcher(None, wanted, name).ratio(), name

    names = [family.name for family in loaded.families]
    if wanted not in names:
        nearest = ", ".join(sorted(names, key=likeness))
        raise JmxlakeError(f"--family {wanted}: no such family; there are {nearest}")
    return loaded.family(wanted)


def _row(family: Family, metric: Metric) -> dict[str, object]:
    return {
        "family": family.name,
        "via": family.via,
        "cadence_seconds": family.cadence_seconds,
        "metric": metric.name,
        "unit": metric.unit,
        "kind": metric.kind,
        "read_from": metric.object or f"{family.via.replace('_', ' ').capitalize()} {metric.call}",
        "attribute": metric.attribute_name if metric.object else None,
        "kip": metric.kip,
        "first": metric.first,
        "last": metric.last,
        "description": metric.description,
    }


def _print_table(family: Family) -> None:
    """To a pipe a line a metric, with tabs between; to a terminal as many lines as it takes."""
    from collector.commands.display import width

    roles = " and ".join(f"{role}s" for role in family.roles)
    title = f"{family.name}: of {roles}, every {family.cadence_seconds} s via {family.via}"
    if sys.stdout.isatty():
        click.secho("\n".join([*_lines(title, width()), ""]), bold=True)
        for metric in family.metrics:
            click.echo(_stacked(family, metric))
        return
    click.echo(title)
    click.echo("\t".join(("Metric", "Unit", "Kind", "Read from", "Attribute", "KIP", "First")))
    for metric in family.metrics:
        row = _row(family, metric)
        cells = [row[key] for key in ("metric", "unit", "kind", "read_from", "attribute")]
        kip = (metric.kip or "").removeprefix("KIP-")
        click.echo("\t".join(str(cell or "") for cell in (*cells, kip, metric.first)))


def _stacked(family: Family, metric: Metric) -> str:
    """A metric over some lines, for where a table would break every name."""
    from collector.commands.display import width

    row = _row(family, metric)
    facts = [
        f"[{metric.unit}]",
        metric.kind,
        metric.kip,
        metric.first and f"from {metric.first} on",
    ]
    place = f"{row['read_from']} {row['attribute'] or ''}".rstrip()
    head, *rest = _lines(f"{metric.name}  {', '.join(filter(None, facts))}", width() - len(_INDENT))
    head = head.replace(metric.name, click.style(metric.name, bold=True), 1)
    more = _lines(place, width() - len(_INDENT))
    return "\n".join([head, *(f"{_INDENT}{line}" for line in (*rest, *more))])


def _lines(text: str, width: int) -> list[str]:
    """Lines of this width; none ends within a word, even if that is wider."""
    lines = [""]
    for part in _BREAK.split(text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]
