"""What reading a broker costs, against the tools that people use: ``make bench-scrape``.

One broker of a real cluster, and every tool reads the same beans of it. bench/README.md says
what is measured how.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import against, cost, large_window, many_brokers, offsets, table, weight
from bench.broker import LoadedBroker
from bench.curve import curve
from bench.extent import FULL, QUICK, Extent
from bench.findings import Findings
from bench.peers import exporter
from bench.peers.ours import Jmxlake
from bench.rmi import BareRmi
from bench.tools import Tools
from demo.errors import DemoError
from demo.ports import free_ports
from tests.rig.teller import Teller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.peers import Target

_FEW, _MANY = 1_000, 5_000
_OFFSET_ROUNDS = 5


def measure(folder: Path, extent: Extent, teller: Teller) -> Findings:
    """Everything, step by step."""
    findings, tools = Findings(), Tools(folder)
    teller.say("starting a cluster of three brokers")
    with LoadedBroker(folder / "kafka", tools.jvm_options) as broker:
        teller.say(f"{_FEW:,} partitions, and clients with quotas")
        broker.grow(_FEW)
        broker.start_clients()
        _weigh(broker, folder, extent, teller, findings)
        with _reading(tools.target(broker), broker.cluster.libs) as (ours, bare):
            teller.say("the same beans: each tool in turn")
            findings.same = tools.same_beans(ours, broker, bare, extent)
            teller.show(table.tools(f"The same beans of {_FEW:,} partitions", findings.same))
            teller.say("all beans: jmx_exporter and ours in turn")
            findings.everything = tools.all_beans(ours, broker, bare, extent)
            teller.show(table.tools("Beside jmx_exporter with all beans", findings.everything))
            teller.say("log offsets: batched and bean by bean")
            findings.offsets = offsets.compare(broker, bare, _OFFSET_ROUNDS)
            teller.show(table.offsets(findings.offsets))
            teller.say("0, 1, 10 and 100 % of the partitions under min ISR")
            findings.points = curve(broker, ours, bare, extent)
        teller.say(f"{_MANY:,} partitions")
        broker.grow(_MANY)
        with _reading(tools.target(broker), broker.cluster.libs) as (ours, bare):
            teller.say("0, 1, 10 and 100 % of them under min ISR")
            findings.points += curve(broker, ours, bare, extent)
        teller.show(table.curve(findings.points))
    teller.say(f"memory of an agent that reads {many_brokers.BROKERS} brokers")
    findings.many_brokers = many_brokers.weigh(folder / "many", teller.say)
    return findings


def _weigh(
    broker: LoadedBroker, folder: Path, extent: Extent, teller: Teller, findings: Findings
) -> None:
    teller.say(f"memory of agents without and with Admin: {extent.agent_scrapes:,} scrapes")
    findings.weights = weight.weigh(broker, folder, extent, teller.say)
    teller.show(table.weights(findings.weights))
    teller.say("processor time of a scrape of the metadata topic of remote storage")
    findings.remote_log = weight.remote_log(broker, folder / "remote-log")
    teller.say(f"memory for a window of {large_window.ROWS:,} rows")
    findings.large_window = weight.large_window(broker, folder / "large")


@contextmanager
def _reading(target: Target, libs: Path) -> Iterator[tuple[Jmxlake, BareRmi]]:
    """Connections to a broker that has settled; it would close them if they were idle meanwhile."""
    ours, bare = Jmxlake(target, libs), BareRmi(target)
    cost.settle(bare)
    try:
        yield ours, bare
    finally:
        bare.close()
        ours.close()


@contextmanager
def _one_broker() -> Iterator[list[str]]:
    """Yield arguments of ``bench.reads`` for a broker that both trees read."""
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as name:
        folder, (port,) = Path(name), free_ports(1)
        exporter.write(folder / "exporter.yaml", exporter.EVERYTHING)
        agent = exporter.agent(port, folder / "exporter.yaml")
        with LoadedBroker(folder / "kafka", (agent,)) as broker:
            broker.grow(_FEW)
            broker.start_clients()
            yield [broker.target(port).text()]


def main() -> int:
    """Measure, and print tables and the line of JSON."""
    parser = against.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look, in ten minutes")
    chosen = parser.parse_args()
    extent = QUICK if chosen.quick else FULL
    try:
        with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
            findings = measure(Path(folder), extent, Teller())
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(findings.as_json()))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.reads", main, ".*_ms", within=_one_broker))
