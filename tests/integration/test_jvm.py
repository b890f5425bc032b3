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


def test_jpypes_thread_of_references_runs_only_at_the_exit_which_waits_for_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=False, capture_output=True, text=True
    )
    assert ran.stdout == "meanwhile: False\nat the exit: True\n", ran.stderr
