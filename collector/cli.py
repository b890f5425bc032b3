"""``jmxlake-agent``: the commands beside a broker.

Exit codes: 0 well, 1 something is wrong and one line says what, 2 the command was called wrongly.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

import click

from collector.errors import ConfigError, JmxlakeError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config import Config
    from collector.samples import Scrape

_CONFIG = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default=Path("/etc/jmxlake/agent.yaml"),
    show_default=True,
    help="The agent's configuration.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


class _OneLine(click.Group):
    """An extra that is not installed is one line too."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            _fail(JmxlakeError(f"{error.name} is missing: install jmxlake[agent]"))


@click.group(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Read a Kafka broker's JMX beans and keep them, exactly once, in Delta tables."""


@main.command()
@_CONFIG
@_JSON
def run(path: Path, *, as_json: bool) -> None:
    """Read on schedule until SIGTERM or Ctrl-C; then deliver what is left."""
    from collector import wiring
    from collector.logs import configure
    from collector.spool import Spool

    configure(as_json=as_json)
    stop = threading.Event()

    def work(config: Config) -> None:
        with Spool(config.spool.path, config.spool.max_size.bytes) as spool:
            agent = wiring.agent(config, spool)
            _on_signals(lambda *_: stop.set())  # after the JVM, which sets handlers of its own
            agent.run(stop)
            _on_signals(signal.SIG_IGN)  # all is kept; a second signal must not look like a crash

    _guarded(path, work)


@main.command()
@_CONFIG
@_JSON
def once(path: Path, *, as_json: bool) -> None:
    """Read everything once and print what is above zero; nothing is kept."""
    from collector import wiring

    def work(config: Config) -> None:
        loaded = wiring.catalogue(config)
        failed = 0
        for task in wiring.tasks(config, loaded, wiring.sources(config)):
            scrape = task.scraper.attempt(task.family, task.interval_us)
            failed += scrape.outcome != "ok"
            _print_scrape(scrape, as_json=as_json)
        if failed:
            raise SourceError(f"{failed} families could not be read; see above")

    _guarded(path, work)


@main.command()
@_CONFIG
@_JSON
def check(path: Path, *, as_json: bool) -> None:
    """Try what the agent needs - configuration, sources and lake - and say what fails."""
    from collector import wiring
    from collector.spool import Spool

    def work(config: Config) -> None:
        steps: list[tuple[str, Callable[[], str]]] = [
            (via, lambda source=source: _met(source))  # type: ignore[misc]
            for via, source in wiring.sources(config).items()
            if via in ("jmx", "admin")  # the others are more connections to the same
        ]

        def lake() -> str:
            with TemporaryDirectory() as folder, Spool(Path(folder) / "spool.db", 1) as spool:
                wiring.delivery(config, spool).check()  # the agent's own spool may be in use
            return config.lake.path

        wrong = 0
        for name, step in [*steps, ("lake", lake)]:
            wrong += not _try(name, step, as_json=as_json)
        if wrong:
            raise JmxlakeError(f"{wrong} of {len(steps) + 1} checks failed; see above")

    _guarded(path, work)


@main.command()
@click.option("--catalogue", type=click.Path(path_type=Path), help="Folder with further files.")
@_JSON
def beans(catalogue: Path | None, *, as_json: bool) -> None:
    """Print what is read: every metric, its bean, unit and proposal."""
    from collector.catalogue import load

    try:
        families = load(catalogue).families
    except ConfigError as error:
        _fail(error)
    for family in families:
        if not as_json:
            click.echo(f"\n{family.name}, every {family.cadence_seconds} s via {family.via}")
        for metric in family.metrics:
            where = metric.object or f"Admin {metric.call}"
            row = {"family": family.name, "metric": metric.name, "unit": metric.unit,
                   "read_from": where, "kip": metric.kip}  # fmt: skip
            click.echo(json.dumps(row) if as_json else f"  {metric.name} [{metric.unit}]  {where}")


def _on_signals(handler: Callable[..., object] | signal.Handlers) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def _met(source: Any) -> str:
    identity = source.identify()
    version = f", Kafka {identity.kafka_version}" if identity.kafka_version else ""
    return f"node {identity.node} of cluster {identity.cluster}{version}"


def _try(name: str, step: Callable[[], str], *, as_json: bool) -> bool:
    try:
        found, well = step(), True
    except JmxlakeError as error:
        found, well = str(error), False
    if as_json:
        click.echo(json.dumps({"check": name, "ok": well, "found": found}))
    else:
        click.echo(f"{'ok    ' if well else 'FAILED'}  {name}: {found}")
    return well


def _print_scrape(scrape: Scrape, *, as_json: bool) -> None:
    seconds = (scrape.answered_us - scrape.asked_us) / 1e6
    if not as_json:
        beans_read = scrape.answer.beans if scrape.answer else 0
        error = f": {scrape.error}" if scrape.error else ""
        click.echo(
            f"{scrape.family}  {scrape.outcome}{error}  {beans_read} beans in {seconds:.3f} s"
        )
    for reading in scrape.answer.readings if scrape.answer else ():
        for series, value in sorted(reading.values.items(), key=str):
            subject = {
                key: part for key, part in series._asdict().items() if part not in (None, ())
            }
            if as_json:
                click.echo(json.dumps({"family": scrape.family, **subject, "value": value}))
            else:
                labels = " ".join(f"{k}={v!r}" for k, v in subject.items() if k != "metric")
                click.echo(f"  {series.metric}  {labels}  {'idle' if value is None else value}")


def _guarded(path: Path, work: Callable[[Config], None]) -> None:
    """Run a command; whatever is wrong is one line and exit code 1."""
    from collector.config import load

    try:
        work(load(path))
    except JmxlakeError as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    click.echo(f"jmxlake-agent: {error}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
