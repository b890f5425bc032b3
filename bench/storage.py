"""What a sample takes on disk: ``make bench-storage``.

Traces that were recorded from a real broker are kept as an agent keeps them, and as plain Delta
tables. bench/README.md says what is counted how. ``--record`` makes the traces anew, in an hour.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bench import against, hostile, kept, plain, recording, trace
from bench.derived import derived
from bench.storage_findings import CLAIM, Findings, show
from bench.written import written
from collector import catalogue as catalogues
from collector.model import Scrape
from demo.errors import DemoError
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


TRACES: Final = {"quiet": 2, "busy": 8}
"""Traces by name: records a second that were written meanwhile, over all topics."""

_FOLDER: Final = Path(__file__).parent / "traces"
_MINUTE_US: Final = 60_000_000
_HOSTILE_MINUTES: Final = 10
_WRITTEN: Final = (0, 5, 25, 100)  # percent of the partitions between two scrapes
_QUICK_MINUTES: Final = 6
_SEED: Final = 164


_COMPARED = r"bytes_per_sample(?!_plain).*|rows_per_partition_hour|bytes|log_bytes"


def measure(folder: Path, minutes: int | None, teller: Teller) -> Findings:
    """Keep every trace in every way."""
    traces = {name: _first(derived(trace.read(_path(name))), minutes) for name in TRACES}
    quiet = traces["quiet"]
    kinds = hostile.learn(quiet)
    worst = hostile.hostile(_first(quiet, minutes or _HOSTILE_MINUTES), kinds, _SEED)
    ways: dict[str, Iterable[Scrape]] = {
        **traces,
        "default-cadences": default_cadences(quiet),
        **{f"written-{share}-percent": written(quiet, share / 100) for share in _WRITTEN},
        "hostile": worst,
    }
    findings = Findings()
    for name, scrapes in ways.items():
        teller.say(f"{name}: as runs")
        findings.kept[name] = kept.keep(scrapes, folder / name)
    teller.say("quiet: as a plain Delta table")
    findings.plain = plain.write(quiet, folder / "plain")
    teller.say("quiet: as a plain Delta table, sorted")
    findings.ordered = plain.write_sorted(quiet, folder / "ordered")
    return findings


def default_cadences(scrapes: Iterable[Scrape]) -> Iterator[Scrape]:
    """The scrapes that an agent would have made that reads each family as often as the catalogue
    says, which is every 10, 30 or 60 s."""
    cadences = {family.name: family.cadence_us for family in catalogues.load().families}
    for scrape in scrapes:
        interval_us = cadences[scrape.family]
        if scrape.tick_us % interval_us == 0:
            yield replace(scrape, interval_us=interval_us)


def record(name: str, teller: Teller) -> None:
    """Make a trace anew, in the repository."""
    packed: list[bytes] = []  # at once: what a source hands over may change later

    def keep(scrape: Scrape) -> None:
        packed.append(msgspec.msgpack.encode(scrape))

    with tempfile.TemporaryDirectory(prefix="jmxlake-trace-") as folder:
        recording.record(Path(folder), TRACES[name], keep, teller.say)
    scrapes = (msgspec.msgpack.decode(one, type=Scrape) for one in packed)
    trace.write(_path(name), scrapes)
    teller.say(f"{len(packed)} scrapes in {_path(name)}")


def _path(name: str) -> Path:
    return _FOLDER / f"{name}.msgpack.xz"


def _first(scrapes: Iterable[Scrape], minutes: int | None) -> list[Scrape]:
    found = list(scrapes)
    until_us = found[0].tick_us + minutes * _MINUTE_US if minutes else None
    return found if until_us is None else [one for one in found if one.tick_us < until_us]


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="the first minutes of each trace only")
    parser.add_argument("--record", choices=TRACES, help="make a trace anew; 35 minutes")
    options = parser.parse_args()
    teller = Teller()
    try:
        if options.record:
            record(options.record, teller)
            return 0
        with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
            findings = measure(Path(folder), _QUICK_MINUTES if options.quick else None, teller)
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    show(findings, teller)
    print(json.dumps({"claim": CLAIM, "figures": findings.figures(), "ratios": findings.ratios()}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.storage", main, _COMPARED))
