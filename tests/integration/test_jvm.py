"""The agent's own JVM, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_METRICS = """
import urllib.request
from collector.sources.java import jvm
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats
from collector.telemetry.health import HealthServer

class Heap:
    def collect(self):
        assert memory.java() is not None
        return []

jvm.start()
stats = AgentStats()
stats.registry.register(Heap())
server = HealthServer("127.0.0.1", 0, stats)
url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
beans = jvm.java("java.lang.management.ManagementFactory").getThreadMXBean()

def threads_after(requests):
    for _ in range(requests):
        urllib.request.urlopen(url).read()
    return int(beans.getThreadCount())

first = threads_after(5)
print(threads_after(50) - first < 10)
server.close()
"""


def test_requests_for_metrics_leave_no_thread_of_java_behind() -> None:
    assert _run(_METRICS) == "True\n"


def _run(program: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_wrong_java_option_is_named_by_its_key() -> None:
    said = _run("""
from collector.errors import ConfigError
from collector.sources.java import jvm
try:
    jvm.start(None, options="nonsense")
except ConfigError as error:
    print(error)
""")
    assert "does not start: Unable to start JVM. Correct java.options, or set JAVA_HOME" in said
