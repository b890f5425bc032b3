"""A real S3 server for tests and benchmarks: versitygw, kept in ``s3/`` of the cache."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from demo.errors import DemoError
from demo.jars import cache_folder
from deploy import go

if TYPE_CHECKING:
    from pathlib import Path

_VERSITYGW = go.Program("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0")


def versitygw() -> Path:
    """The server's program, built if it is not there yet.

    Raises:
        DemoError: It could not be built.
    """
    return go.built(_VERSITYGW, cache_folder() / "s3")


def main() -> int:
    """Build it; for a Makefile, so that the first run says what it waits for."""
    try:
        print(versitygw())
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
