"""``jmxlake-agent``: the command group, and the commands that print what the package contains.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 78 wrong
configuration.
"""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import shell_complete

from collector.cli.command import CONFIG_VARIABLE, JSON, OneLineErrorGroup
from collector.errors import JmxlakeError

if TYPE_CHECKING:
    from collector.catalogue import Family, Metric

_INDENT: Final = "    "

_COMMANDS: Final = {
    "Run": {
        "run": ("run", "Scrape on schedule until SIGTERM or Ctrl-C."),
        "top": ("top", "Show current problems, worst first."),
    },
    "Set up": {
        "config": ("main", "Print the reference configuration with all keys."),
        "schema": ("main", "Print the JSON Schema of the configuration."),
        "check": ("check", "Test all connections and print failures with fixes."),
        "scrape": ("scrape", "Scrape once and print nonzero values."),
        "client-metrics": (
            "client_metrics",
            "Manage the subscription to client throttle times (KIP-714).",
        ),
        "systemd-unit": ("main", "Print the systemd unit."),
        "completion": ("main", "Print a shell completion script."),
    },
    "Inspect": {
        "metrics": ("main", "List collected metrics, MBeans, units and Kafka versions."),
        "support-bundle": ("support_bundle", "Collect versions, logs and state for a bug report."),
    },
    "Import": {
        "import": ("import_prometheus", "Import history from before the agent was installed."),
    },
}
"""The module and the first sentence of each command, by section of ``--help``."""
_RENAMED: Final = {
    "beans": "metrics",
    "once": "scrape",
    "support": "support-bundle",
    "unit": "systemd-unit",
}


@click.group(
    cls=OneLineErrorGroup, package="collector.cli", sections=_COMMANDS, renamed=_RENAMED,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Scrape Kafka's JMX metrics and deliver them, exactly once, to Delta tables."""


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    For bash: jmxlake-agent completion bash > /etc/bash_completion.d/jmxlake-agent
    """
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake-agent", "_JMXLAKE_AGENT_COMPLETE", f"{shell}_source")


@click.command
def config() -> None:
    """Print the reference configuration with all keys.

    Each key has its default value.
    """
    click.echo(_shipped("agent.yaml"), nl=False)


@click.command
def schema() -> None:
    """Print the JSON Schema of the configuration.

    Editors use it for completion and checks. A file that jmxlake-agent config printed names the
    schema of its version. For an editor without network access, write the output to a file and
    name that file in the first line of the configuration: # yaml-language-server: $schema=FILE
    """
    from collector.config.schema import agent_schema
    from lakehouse.tables import typed_settings

    click.echo(typed_settings.schema_text(agent_schema()), nl=False)


@click.command("systemd-unit")
@click.option("--template", is_flag=True, help="Print a template unit for several agents per host.")
def systemd_unit(*, template: bool) -> None:
    """Print the systemd unit.

    For several agents per host, write the output of jmxlake-agent systemd-unit --template to
    /etc/systemd/system/jmxlake-agent@.service. The unit jmxlake-agent@NAME then reads
    /etc/jmxlake/NAME.yaml and stores its spool in /var/lib/jmxlake/NAME.db. Each agent needs its
    own health.port.
    """
    text = _shipped("systemd/jmxlake-agent.service")
    if template:
        spool = "Environment=JMXLAKE_AGENT__SPOOL__PATH=/var/lib/jmxlake/%i.db\n"
        text = text.replace("/etc/jmxlake/agent.", "/etc/jmxlake/%i.")
        text = text.replace("enable --now jmxlake-agent", "enable --now jmxlake-agent@NAME")
        text = text.replace("reload jmxlake-agent`", "reload jmxlake-agent@NAME`")
        text = text.replace("EnvironmentFile=", f"{spool}EnvironmentFile=")
    click.echo(text, nl=False)


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
    families = _families(path, catalogue, wanted)
    if as_json:
        for family in families:
            for metric in family.metrics:
                click.echo(json.dumps(_row(family, metric)))
        return
    for family in families:
        _print_table(family)


def _families(path: Path | None, folder: Path | None, wanted: str | None) -> list[Family]:
    from collector.agent import plan
    from collector.catalogue import load
    from collector.config import loader

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


def _shipped(name: str) -> str:
    """Return a file of deploy/ from the checkout, or from the installed package."""
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    return ((checkout if checkout.is_dir() else installed) / name).read_text("utf-8")


if __name__ == "__main__":
    main()
