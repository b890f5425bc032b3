"""The agent's own JVM, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import atexit
import jpype
from collector.sources.java import jvm

def is_running():
    return bool(jvm.java("org.jpype.ref.JPypeReferenceQueue").getInstance().isRunning())

atexit.register(lambda: print("at the exit:", is_running()))
jvm.start()
print("meanwhile:", is_running())
"""


def test_jpype_reference_thread_runs_at_exit_only() -> None:
    assert _run(_PROGRAM) == "meanwhile: False\nat the exit: True\n"


_METRICS = """
import urllib.request
from collector.sources.java import jvm
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats
from collector.telemetry.health_server import HealthServer

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
