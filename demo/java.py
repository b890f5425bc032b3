from __future__ import annotations

import os
import shutil
from pathlib import Path

from demo.errors import DemoError


def java_command(*arguments: str) -> list[str]:
    """A command line that runs Java: that of JAVA_HOME, else the one on PATH.

    Raises:
        DemoError: There is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise DemoError(
            f"Java was not found ({java or 'no java on PATH'}): install Java 17 or set JAVA_HOME."
        )
    return [java, *arguments]
