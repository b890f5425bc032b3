"""Text of a PDF, a page at a time."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def pages_of(file: Path) -> list[str]:
    """Return the text of each page, with single spaces."""
    program = shutil.which("pdftotext")
    if program is None:
        pytest.skip("pdftotext is not installed; on Debian: apt-get install poppler-utils")
    done = subprocess.run([program, str(file), "-"], capture_output=True, check=True, timeout=60)
    pages = done.stdout.decode("utf-8").removesuffix("\f").split("\f")
    return [" ".join(page.split()) for page in pages]
