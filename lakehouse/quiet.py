"""Keep what a JVM says about itself from the user's terminal, and from what a command prints."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def quiet_jvm() -> Iterator[None]:
    """Give a process that is started meanwhile a standard output and error of its own.

    Spark's launcher prints warnings before any logging setting is read, and VACUUM prints to
    standard output. If the start fails, what was said is shown after all: nobody can help without
    it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    out, kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(kept, 2)
            said.seek(0)
            os.write(2, said.read())
            raise
        finally:
            os.dup2(out, 1)
            os.dup2(kept, 2)
            os.close(out)
            os.close(kept)
