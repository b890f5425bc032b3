"""``jmxlake-agent client-metrics``: the subscription to throttle times of clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collector.cli.command import CONFIG, JSON, guarded, span
from collector.errors import JmxlakeError, SettingError

if TYPE_CHECKING:
    from collector.config.schema import Config
    from collector.sources.admin.client_metrics_subscriptions import Subscription, Subscriptions

_LEAST_MS: Final = 100
_MOST_MS: Final = 3_600_000
_NONE: Final = (
    "no subscription requests throttle times. Run `jmxlake-agent client-metrics subscribe`"
)


@click.group(name="client-metrics")
def client_metrics() -> None:
    """Manage the subscription to client throttle times (KIP-714)."""


def _interval_ms(context: click.Context, option: click.Parameter, text: str) -> int:  # noqa: ARG001
    from collector.settings import Duration

    try:
        interval_ms = Duration(text) // 1000
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if not _LEAST_MS <= interval_ms <= _MOST_MS:
        raise click.BadParameter("must be between 100ms and 1h")
    return interval_ms


@client_metrics.command
@CONFIG
@JSON
@click.option(
    "--interval", default="30s", show_default=True, callback=_interval_ms,
    help="Push interval of the clients.",
)  # fmt: skip
@click.option(
    "--match", multiple=True, metavar="KEY=REGEX",
    help="Select clients, for example by client_id. Repeatable. Default: all clients.",
)  # fmt: skip
def subscribe(path: Path, *, as_json: bool, interval: int, match: tuple[str, ...]) -> None:
    """Create or replace the subscription.

    Clients then push their throttle times to brokers. A broker requires the plugin of deploy/kafka.
    The agent's principal requires AlterConfigs on the cluster.
    """

    def work(cluster: str, found: Subscriptions) -> None:
        _print(cluster, found.set(interval, match), as_json=as_json)

    _with_subscriptions(path, work)


@client_metrics.command
@CONFIG
@JSON
def status(path: Path, *, as_json: bool) -> None:
    """List all subscriptions of the cluster.

    The exit code is 1 if no subscription requests throttle times.
    """

    def work(cluster: str, found: Subscriptions) -> None:
        listed = found.all()
        for one in listed:
            _print(cluster, one, as_json=as_json)
        if not any(one.kinds for one in listed):
            raise JmxlakeError(f"cluster {cluster}: {_NONE}")

    _with_subscriptions(path, work)


@client_metrics.command
@CONFIG
@JSON
def remove(path: Path, *, as_json: bool) -> None:
    """Remove the subscription, so that clients stop pushing."""

    def work(cluster: str, found: Subscriptions) -> None:
        from collector.sources.admin.client_metrics_subscriptions import NAME

        removed = found.remove()
        if as_json:
            row = {"cluster": cluster, "subscription": NAME, "removed": removed}
            click.echo(json.dumps(row))
        else:
            click.echo(f"{NAME}: {'removed' if removed else 'does not exist'}")

    _with_subscriptions(path, work)


def _with_subscriptions(path: Path, work: Callable[[str, Subscriptions], None]) -> None:
    """Run a command with the subscriptions of the configured cluster, and end the process."""

    def with_config(config: Config) -> None:
        from collector.agent.plan import start_java
        from collector.sources.admin.client_metrics_subscriptions import connected

        if config.admin is None:
            raise SettingError("admin", "this section is missing. Add it to reach the cluster.")
        start_java(config)
        with connected(config.admin, config.source.cluster) as found:
            work(found.identity().cluster, found)

    guarded(path, with_config)


def _print(cluster: str, one: Subscription, *, as_json: bool) -> None:
    from lakehouse.tables.error_text import printable

    if as_json:
        row = {
            "cluster": cluster, "subscription": one.name, "metrics": one.metrics,
            "interval_ms": one.interval_ms, "match": one.match, "throttle_times": one.kinds,
        }  # fmt: skip
        click.echo(json.dumps(row))
        return
    every = span(one.interval_ms / 1e3) if one.interval_ms >= 1000 else f"{one.interval_ms}ms"
    times = f"{' and '.join(one.kinds)} throttle times" if one.kinds else "no throttle times"
    who = f"clients with {' and '.join(one.match)}" if one.match else "all clients"
    click.echo(printable(f"{one.name}: {times} of {who}, every {every}"))
