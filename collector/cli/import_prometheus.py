"""``jmxlake-agent import prometheus``: history from before the agent was installed."""

import hashlib
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from collector.agent import plan
from collector.agent.backfill import Past, seen
from collector.catalogue import load
from collector.cli.command import guarded
from collector.config.loader import parse
from collector.config.schema import Config
from collector.delivery.delivery import Delivery
from collector.delivery.store import of_lake
from collector.errors import ConfigError, SourceError
from collector.sources.base.identity import Expected
from collector.sources.prometheus import Prometheus, exporter_rules
from collector.sources.prometheus.api import PrometheusApi
from collector.sources.prometheus.history import PastSource, brokers, matcher
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool

_FAMILIES: Final = ("min_isr", "quotas", "tiered", "requests")
_OF_SECTION: Final = ("rules_file", "kafka_version", "user", "password_file", "ca_file", "timeout")
_WHERE: Final = "import prometheus"


_INSTANT: Final = click.DateTime(
    [f"%Y-%m-%d{rest}" for rest in ("", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%z", "T%H:%M:%S.%f%z")]
)


@click.group(name="import")
def import_() -> None:
    """Import history from before the agent was installed."""


@import_.command
@click.argument("url")
@click.argument("lake")
@click.option("--from", "start", type=_INSTANT, metavar="TIME", required=True, help="Start (UTC).")
@click.option(
    "--to", "end", type=_INSTANT, metavar="TIME",
    help="End (UTC), usually the agent's first start. Default: now.",
)  # fmt: skip
@click.option("--cluster", required=True, help="Kafka cluster ID, which exporters do not provide.")
@click.option("--match", default="", help="Label matchers of the targets, such as 'job=\"kafka\"'.")
@click.option(
    "--label", default="instance", show_default=True, help="Label that identifies a broker."
)
@click.option(
    "--node", multiple=True, metavar="VALUE=ID",
    help="Broker ID for a label value, if no app-info metric exists. Repeatable.",
)  # fmt: skip
@click.option(
    "--family", multiple=True, default=_FAMILIES, show_default=True,
    help="Family to import. Repeatable.",
)  # fmt: skip
@click.option("--rules-file", type=click.Path(), help="jmx_exporter configuration file.")
@click.option("--kafka-version", help="Kafka version of the brokers, such as 4.1.0.")
@click.option(
    "--step", default="15s", show_default=True, help="Minimum time between two imported scrapes."
)
@click.option("--user", help="User name.")
@click.option("--password-file", type=click.Path(), help="File that contains only the password.")
@click.option("--ca-file", type=click.Path(), help="CA bundle (PEM) for https.")
@click.option("--timeout", default="60s", show_default=True, help="Timeout per request.")
@click.option(
    "--options-file", type=click.Path(), help="File with delta-rs storage options (YAML)."
)
@click.option("--tenant", help="Mimir tenant (X-Scope-OrgID).")
@click.option("--state", type=click.Path(), help="Working directory.")
def prometheus(url: str, lake: str, **options: Any) -> None:
    """Import from Prometheus, Thanos or Mimir.

    URL is the address of the API. An interrupted import continues if the same command is run again.
    Hours that LAKE already has are skipped.
    """
    made = partial(_config, url, lake, options)
    guarded(_WHERE, lambda config: _run(config, options), made=made)


def _config(url: str, lake: str, options: Mapping[str, Any], node: str = "0") -> Config:
    """Return the configuration that an agent of one broker would have."""
    known = {
        family.name
        for family in load().families
        if family.via == "jmx" and "broker" in family.roles
    }
    if unknown := sorted({*options["family"]} - known):
        raise ConfigError(f"--family {unknown[0]}: unknown. Use one of {', '.join(sorted(known))}")
    home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    state = Path(options["state"] or f"{home}/jmxlake").absolute()
    identity = [options["cluster"], node, lake, options["start"], sorted(options["family"])]
    name = hashlib.sha256(repr(identity).encode()).hexdigest()[:12]
    exporter = {"url": url, **{key: options[key] for key in _OF_SECTION if options[key]}}
    raw = {
        "source": {"node": node, "cluster": options["cluster"], "prometheus": exporter},
        "lake": {"path": lake, "options_file": options["options_file"]},
        "spool": {"path": f"{state}/import-{node}-{name}.db"},
        "families": {
            family: {"interval": options["step"], "enabled": family in options["family"]}
            for family in known
        },
    }
    return parse(raw, _WHERE)


def _run(config: Config, options: Mapping[str, Any]) -> None:
    section, now_us = config.source.prometheus, time.time_ns() // 1000
    span = _us(options["start"]), min(_us(options["end"]) or now_us, now_us)
    if section is None or not 0 <= span[0] < span[1]:
        raise ConfigError("--to must be after --from, and --from must be between 1970 and now")
    given = dict(pair.rpartition("=")[::2] for pair in options["node"])
    rules, match = exporter_rules.read(section.rules_file), options["match"]
    with closing(PrometheusApi(section, options["tenant"])) as api:
        empty = list[str]()
        found = brokers(api, rules, match, options["label"], given, span)
        for value, node in found.items():
            selector = ",".join(filter(None, (match, matcher(options["label"], value))))
            of_broker = _config(section.url, config.lake.path, options, node)
            empty += _import(of_broker, section, api, selector, span)
        if empty:
            raise SourceError("; ".join(empty))


def _in_part(past: Past) -> str:
    """Return a note about incomplete scrapes; empty if all were complete."""
    parts = past.brought + past.failed - past.read
    return f", {parts:,} of them incomplete ({past.why})" if parts else ""


def _us(at: datetime | None) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6) if at else 0


def _import(
    config: Config, section: Prometheus, api: PrometheusApi, selector: str, span: tuple[int, int]
) -> list[str]:
    """Import the history of one broker; return an error if nothing was imported."""
    source, catalogue = config.source, plan.catalogue(config)
    families = plan.families(config, catalogue)
    expected = Expected(source.role, str(source.node), source.cluster)
    config.spool.path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        spool = resources.enter_context(Spool(config.spool.path, config.spool.max_size))
        delays, names = plan.delays(config, catalogue), plan.sources(config)
        recorder = Recorder(spool, names, config.window.us, delays, catalogue.hash)
        sources = tuple(
            PastSource(expected, section, api, selector, family) for family, _ in families
        )
        lake = config.lake
        to_lake = Delivery(lake.path, of_lake(lake), spool, recorder, lambda: catalogue)
        past = Past(api, selector, sources, families[0][1], spool, recorder, to_lake)
        bar = resources.enter_context(click.progressbar(
            length=(span[1] - span[0]) // 1_000_000, label=source.name, file=sys.stderr,
        ))  # fmt: skip
        past.run(
            span,
            lambda: seen(config, [family.name for family, _ in families]),
            lambda at_us: bar.update((at_us - span[0]) // 1_000_000 - bar.pos),
        )
    click.echo(
        f"{source.name}: {past.brought:,} of {past.read:,} scrapes had samples"
        f"{_in_part(past)};"
        f" skipped {past.left_out_us / 3.6e9:,.2f} of {(span[1] - span[0]) / 3.6e9:,.2f} h"
    )
    if past.brought or not (past.failed or (past.holes and not past.left_out_us)):
        return []
    why = past.why or "no scrapes in Prometheus for that time. Correct --from, --to or --match"
    return [f"{source.name}: no data imported: {why}"]
