"""``jmxlake-agent import prometheus``: the time before the first agent, from Prometheus."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collector.cli.command import guarded
from collector.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collector.agent.backfill import Past
    from collector.config.schema import Config
    from collector.sources.prometheus import Prometheus
    from collector.sources.prometheus.api import PrometheusApi

_FAMILIES: Final = ("min_isr", "quotas", "tiered", "requests")
_OF_SECTION: Final = ("rules_file", "kafka_version", "user", "password_file", "ca_file", "timeout")
_WHERE: Final = "import prometheus"


_INSTANT: Final = click.DateTime(
    [f"%Y-%m-%d{rest}" for rest in ("", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%z", "T%H:%M:%S.%f%z")]
)


@click.group(name="import", short_help="Bring the time before the first agent into the lake.")
def past() -> None:
    """Bring the time before the first agent into the lake."""


@past.command(short_help="Read it from Prometheus, Thanos or Mimir.")
@click.argument("url")
@click.argument("lake")
@click.option("--from", "start", type=_INSTANT, metavar="TIME", required=True, help="Begin, UTC.")
@click.option(
    "--to", "end", type=_INSTANT, metavar="TIME", help="End, as when the agent started; else now."
)
@click.option("--cluster", required=True, help="Cluster id: no exporter gives it.")
@click.option("--match", default="", help="Matchers of the targets, such as 'job=\"kafka\"'.")
@click.option("--label", default="instance", show_default=True, help="In which brokers differ.")
@click.option("--node", multiple=True, metavar="VALUE=ID", help="If no app-info says who it is.")
@click.option("--family", multiple=True, default=_FAMILIES, show_default=True, help="Read it.")
@click.option("--rules-file", type=click.Path(), help="The exporter's configuration.")
@click.option("--kafka-version", help="What ran there, such as 4.1.0.")
@click.option("--step", default="15s", show_default=True, help="Between two scrapes, at least.")
@click.option("--user", help="Whom to log in as.")
@click.option("--password-file", type=click.Path(), help="With the password alone.")
@click.option("--ca-file", type=click.Path(), help="Whom to trust for https, as PEM.")
@click.option("--timeout", default="60s", show_default=True, help="Of one request.")
@click.option("--options-file", type=click.Path(), help="Storage options of delta-rs, as YAML.")
@click.option("--tenant", help="Of Mimir (X-Scope-OrgID).")
@click.option("--state", type=click.Path(), help="Folder for what is under way.")
def prometheus(url: str, lake: str, **options: Any) -> None:
    """Read runs of the past from the API at URL into the tables of LAKE.

    Interrupted, it continues when it is run again as before; what the lake has is left out.
    """
    made = partial(_config, url, lake, options)
    guarded(_WHERE, lambda config: _run(config, options), made=made)


def _config(url: str, lake: str, options: Mapping[str, Any], node: str = "0") -> Config:
    """What an agent of one broker would have as its configuration."""
    from collector.catalogue import load
    from collector.config.loader import parse

    known = {one.name for one in load().families if one.via == "jmx" and "broker" in one.roles}
    if unknown := sorted({*options["family"]} - known):
        raise ConfigError(f"--family {unknown[0]}: give one of {', '.join(sorted(known))}")
    home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    state = Path(options["state"] or f"{home}/jmxlake").absolute()
    import_ = [options["cluster"], node, lake, options["start"], sorted(options["family"])]
    name = hashlib.sha256(repr(import_).encode()).hexdigest()[:12]
    exporter = {"url": url, **{key: options[key] for key in _OF_SECTION if options[key]}}
    raw = {
        "source": {"node": node, "cluster": options["cluster"], "prometheus": exporter},
        "lake": {"path": lake, "options_file": options["options_file"]},
        "spool": {"path": f"{state}/import-{node}-{name}.db"},
        "families": {
            one: {"interval": options["step"], "enabled": one in options["family"]} for one in known
        },
    }
    return parse(raw, _WHERE)


def _run(config: Config, options: Mapping[str, Any]) -> None:
    from collector.sources.prometheus import exporter_rules
    from collector.sources.prometheus.api import PrometheusApi
    from collector.sources.prometheus.history import brokers, matcher

    section, now_us = config.source.prometheus, time.time_ns() // 1000
    span = _us(options["start"]), min(_us(options["end"]) or now_us, now_us)
    if section is None or not 0 <= span[0] < span[1]:
        raise ConfigError("--to: it must be after --from, and --from between 1970 and now")
    given = dict(one.rpartition("=")[::2] for one in options["node"])
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
    """Say that some answers showed a part of the partitions; mostly empty."""
    parts = past.brought + past.failed - past.read
    return f", {parts:,} of them in part ({past.why})" if parts else ""


def _us(at: datetime | None) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6) if at else 0


def _import(
    config: Config, section: Prometheus, api: PrometheusApi, selector: str, span: tuple[int, int]
) -> list[str]:
    """Import one broker's past; the result says why nothing of it was brought."""
    from collector.agent import plan
    from collector.agent.backfill import Past, seen
    from collector.delivery.delivery import Delivery
    from collector.delivery.storage_options import of_lake
    from collector.sources.base.identity import Expected
    from collector.sources.prometheus.history import PastSource
    from collector.spool.recorder import Recorder
    from collector.spool.spool import Spool

    source, catalogue = config.source, plan.catalogue(config)
    families = plan.families(config, catalogue)
    expected = Expected(source.role, str(source.node), source.cluster)
    config.spool.path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        spool = resources.enter_context(Spool(config.spool.path, config.spool.max_size))
        delays, names = plan.delays(config, catalogue), plan.sources(config)
        recorder = Recorder(spool, names, config.window.us, delays, catalogue.hash)
        sources = tuple(PastSource(expected, section, api, selector, one) for one, _ in families)
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
        f"{source.name}: {past.brought:,} of {past.read:,} attempts brought something"
        f"{_in_part(past)};"
        f" {past.left_out_us / 3.6e9:,.2f} of {(span[1] - span[0]) / 3.6e9:,.2f} h left out"
    )
    if past.brought or not (past.failed or (past.holes and not past.left_out_us)):
        return []
    why = past.why or "Prometheus has no scrape of it in that time: correct --from, --to or --match"
    return [f"{source.name}: nothing was imported: {why}"]
