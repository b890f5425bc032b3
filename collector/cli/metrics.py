"""``jmxlake-agent metrics``: the metrics of the catalogue."""

import json
import shutil
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import click

from collector.agent import plan
from collector.catalogue import Family, Metric, load
from collector.cli.command import CONFIG_VARIABLE, JSON, fail
from collector.config import loader
from collector.errors import JmxlakeError

_INDENT = "    "


@click.command
@click.option(
    "--config", "-c", "path", type=click.Path(path_type=Path), envvar=CONFIG_VARIABLE,
    show_envvar=True, help="Use the catalogue of this configuration.",
)  # fmt: skip
@click.option(
    "--catalogue", type=click.Path(path_type=Path),
    help="Folder with additional catalogue files.",
)  # fmt: skip
@click.option("--family", "wanted", help="Limit the list to this family.")
@JSON
def metrics(
    path: Path | None, catalogue: Path | None, wanted: str | None, *, as_json: bool
) -> None:
    """List collected metrics, MBeans, units and Kafka versions."""
    try:
        families = _families(path, catalogue, wanted)
    except JmxlakeError as error:
        fail(error)
    if as_json:
        for family in families:
            for metric in family.metrics:
                click.echo(json.dumps(_row(family, metric)))
        return
    for family in families:
        _print_table(family)


def _families(path: Path | None, folder: Path | None, wanted: str | None) -> list[Family]:
    loaded = plan.catalogue(loader.load(path)) if path else load(folder)
    if wanted == "metadata_log" and path is None:
        # An agent that reads the log gives its metrics the names of the metrics they replace.
        loaded = loaded.preferring(wanted)
    found = [family for family in loaded.families if not wanted or family.name == wanted]
    if not found:
        names = ", ".join(family.name for family in loaded.families)
        raise JmxlakeError(f"--family {wanted}: no such family. Use one of {names}")
    return found


def _row(family: Family, metric: Metric) -> dict[str, Any]:
    called = f"{family.via.replace('_', ' ').capitalize()} {metric.call}"
    return {
        "family": family.name, "via": family.via, "cadence_seconds": family.cadence_seconds,
        "metric": metric.name, "unit": metric.unit, "kind": metric.kind,
        "read_from": metric.object or called,
        "attribute": metric.attribute_text if metric.object else None,
        "kip": metric.kip, "first": metric.first, "last": metric.last,
        "description": metric.description,
    }  # fmt: skip


def _print_table(family: Family) -> None:
    """Print one tab-separated line per metric to a pipe, and wrapped lines to a terminal."""
    roles = " and ".join(f"{role}s" for role in family.roles)
    title = f"{family.name}: every {family.cadence_seconds} s from {roles} via {family.via}"
    terminal = sys.stdout.isatty()
    click.secho(f"{title}\n" if terminal else title, bold=True)
    if not terminal:
        click.echo("\t".join(("Metric", "Unit", "Kind", "Read from", "Attribute", "KIP", "First")))
    for metric in family.metrics:
        row = _row(family, metric)
        if terminal:
            click.echo(_stacked(row, shutil.get_terminal_size().columns))
            continue
        cells = [row[key] for key in ("metric", "unit", "kind", "read_from", "attribute")]
        kip = (metric.kip or "").removeprefix("KIP-")
        click.echo("\t".join(str(cell or "") for cell in (*cells, kip, metric.first)))


def _stacked(row: dict[str, Any], width: int) -> str:
    """Return a metric as several lines; a table would break every name."""
    since = row["first"] and f"since {row['first']}"
    facts = [f"[{row['unit']}]", row["kind"], row["kip"], since]
    place = f"{row['read_from']} {row['attribute'] or ''}"
    fit = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    head = fit(f"{row['metric']}  {', '.join(filter(None, facts))}", subsequent_indent=_INDENT)
    head[0] = head[0].replace(row["metric"], click.style(row["metric"], bold=True), 1)
    return "\n".join([*head, *fit(place, initial_indent=_INDENT, subsequent_indent=_INDENT)])
