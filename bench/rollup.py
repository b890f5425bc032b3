"""What a rollup costs, and what plain samples would: ``make bench-rollup``.

bench/README.md says what is measured how. The last line is for machines. ``--only NAME`` runs a
part, whose commands are fresh processes in any case.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import (
    against,
    rollup_fleet,
    rollup_giant,
    rollup_ours,
    rollup_samples,
    rollup_sizes,
)
from bench.rollup_compare import compare
from bench.rollup_findings import CLAIM, Findings, Peer, planned, show
from bench.rollup_fleet import START
from bench.rollup_process import FailedError, measure, spark_start
from bench.rollup_world import Fleet
from demo.errors import DemoError
from tests.rig.teller import Teller

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

ENGINES: Final = {"duckdb": "duckdb", "polars": "polars", "spark": "spark_plain"}
_WEEK: Final = f"{START:%G-W%V}"
_DAYS: Final = 7
_CLUSTER: Final = "cluster-1"
_HISTORY: Final = Fleet(clusters=1, brokers=5, topics=20, partitions=50, share=0.02, hit=0.02)
_QUICK: Final = {
    "clusters": 1, "brokers": 10, "topics": 50, "partitions": 100, "hours": 2, "history_days": 3,
    "day_clients": 50, "week_share": 0.0, "only": ["day", "clients", "history", "plan"],
}  # fmt: skip


def measure_all(folder: Path, chosen: argparse.Namespace, teller: Teller) -> Findings:
    """Everything that was asked for, one after the other."""
    teller.say("starting Spark")
    findings = Findings(chosen.share, spark_start())
    for name in PARTS:
        if name in chosen.only:
            with (
                _scratch(folder)
                if chosen.folder is None
                else contextlib.nullcontext(folder) as place
            ):
                PARTS[name](findings, place, chosen, teller)
    return findings


def _day(findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller) -> None:
    """A day of the fleet by both engines, and the same questions put to others."""
    fleet, lake = rollup_fleet.fleet_of(chosen), folder / "day"
    teller.say(f"bronze of {chosen.hours} hours, {fleet.series:,} series")
    written = rollup_fleet.write(lake, fleet, START, chosen.hours)
    teller.say(f"rolling up {written.runs:,} runs that stand for {written.samples:,} samples")
    findings.days["day_spark"] = rollup_ours.rolled_up(lake, written)
    _peers(findings, folder, fleet, chosen, teller)
    teller.say("the same without Spark")
    findings.days["day_local"] = rollup_ours.anew(lake, written, "local")
    shutil.rmtree(lake)


def _history(findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller) -> None:
    """An hour more after a short and a long history."""
    days = (1, chosen.history_days)
    teller.say(f"hours more after {days[0]} and {days[1]} days of a smaller fleet")
    with _scratch(folder) as place:
        findings.growth = rollup_ours.growth(place, _HISTORY, days, chosen.repeats)


def _plan(findings: Findings, _: Path, __: argparse.Namespace, ___: Teller) -> None:
    """What the planner makes of a larger fleet; nothing is run."""
    findings.told |= planned()


def _giant_hour(
    findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller
) -> None:
    """One hour of one large cluster by one Spark worker and by two."""
    found = rollup_giant.measured(folder, chosen.giant_brokers, chosen.giant_repeats, teller)
    teller.show(found.table())
    findings.told |= found.figures()
    findings.compared |= found.ratios()


def _sizes(findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller) -> None:
    """Lakes of several sizes by both engines."""
    found = rollup_sizes.sizes(folder, chosen.sizes, teller)
    teller.show(rollup_sizes.table("Rollups by size", found, findings.start))
    for name, one in found.items():
        findings.told |= rollup_sizes.figures(f"size_{name}", one)
        findings.compared |= rollup_sizes.ratios(f"size_{name}", one)


def _settings(findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller) -> None:
    """A lake by Spark with other settings of its session."""
    name = chosen.settings_size
    found = rollup_sizes.variants(folder, name, teller)
    title = f"Settings of Spark's session, {name} runs"
    teller.show(rollup_sizes.table(title, {name: found}, findings.start))
    findings.told |= rollup_sizes.figures(f"settings_{name}", found)


def _peers(
    findings: Findings, folder: Path, fleet: Fleet, chosen: argparse.Namespace, teller: Teller
) -> None:
    """Put the same questions to the others, on a part of the day: one cluster, some hours."""
    at = START + dt.timedelta(hours=chosen.peer_from if chosen.hours > chosen.peer_from else 0)
    hours = min(chosen.peer_hours, chosen.hours)
    teller.say(f"plain samples of {_CLUSTER}, {hours} hours")
    samples = folder / "samples"
    count = rollup_samples.write(samples, fleet, _CLUSTER, at, hours)
    for engine, name in ENGINES.items():
        teller.say(f"{count:,} plain samples by {engine}")
        with _scratch(folder) as place:
            line = [sys.executable, "-m", "bench.rollup_peers", engine, str(samples)]
            cost = measure([*line, str(place / "answers")])
            seconds = json.loads(cost.said)["seconds"]
            agreed = compare(folder / "day", place / "answers", _CLUSTER, at, hours)
        findings.peers.append(Peer(name, count, seconds, cost.peak_gib, agreed))


def _clients(findings: Findings, folder: Path, chosen: argparse.Namespace, teller: Teller) -> None:
    """A day with clients; then fill the week up, state and report it."""
    lake = folder / "day"
    fleet = replace(rollup_fleet.fleet_of(chosen), clients=chosen.day_clients)
    teller.say(f"bronze of {chosen.hours} hours with {fleet.clients:,} clients")
    written = rollup_fleet.write(lake, fleet, START, chosen.hours)
    teller.say(f"rolling up {written.runs:,} runs")
    findings.days["day_clients_spark"] = rollup_ours.rolled_up(lake, written)
    if not chosen.week_share:
        return
    rest = _DAYS * 24 - chosen.hours
    teller.say(f"bronze of {rest} hours more")
    quiet, then = replace(fleet, share=chosen.week_share), START + dt.timedelta(hours=chosen.hours)
    written = rollup_fleet.write(lake, quiet, then, rest)
    teller.say(f"rolling up {written.runs:,} runs more")
    rollup_ours.rolled_up(lake, written, "local")
    for command in ("slo publish", "report"):
        teller.say(f"jmxlake {command} of the week")
        findings.week[command.split()[-1]] = rollup_ours.told(lake, command, _WEEK)


PARTS: Final = {
    "day": _day, "clients": _clients, "history": _history, "plan": _plan,
    "giant_hour": _giant_hour, "sizes": _sizes, "settings": _settings,
}  # fmt: skip


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder for one step, gone afterwards: all of them together would be many GB."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        yield Path(name)


def _options() -> argparse.Namespace:
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a small fleet, some minutes")
    rollup_fleet.options(parser)
    for name, default, what in (
        ("hours", 24, "hours of the fleet that are rolled up at once"),
        ("peer-from", 9, "first hour of the plain samples for the peers"),
        ("peer-hours", 1, "hours of one cluster as plain samples"),
        ("history-days", 30, "days of history, against one"),
        ("repeats", 3, "hours added after either history, on each of two evenings"),
        ("giant-brokers", 425, "brokers of the giant hour's cluster, of 1,000 partitions each"),
        ("giant-repeats", 3, "rollups of the giant hour by each number of workers"),
        ("day-clients", 5_000, "clients of a cluster of the second day"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} ({default})")
    parser.add_argument(
        "--week-share", type=float, default=0.002,
        help="share in the rest of the week, for slo publish and report (0.002); 0: not measured",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="*", choices=PARTS, default=list(PARTS), help="these parts only"
    )
    parser.add_argument(
        "--sizes", nargs="*", choices=rollup_sizes.SIZES, default=["10k", "1m", "10m"],
        help="runs of the lakes of the part sizes (10k 1m 10m)",
    )  # fmt: skip
    parser.add_argument(
        "--settings-size", choices=rollup_sizes.SIZES, default="1m",
        help="runs of the lake of the part settings (1m)",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, help="keep everything there")
    quick, _ = parser.parse_known_args()
    if quick.quick:
        parser.set_defaults(**_QUICK)
    return parser.parse_args()


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    chosen = _options()
    teller = Teller()
    with contextlib.ExitStack() as open_:
        folder = chosen.folder
        if folder is None:
            name = open_.enter_context(tempfile.TemporaryDirectory(prefix="jmxlake-bench-"))
            folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            findings = measure_all(folder, chosen, teller)
        except (DemoError, FailedError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    show(findings, teller)
    print(json.dumps({"claim": CLAIM, "figures": findings.figures(), "ratios": findings.ratios()}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.rollup", main, ".*_s", "--quick"))
