"""The maintenance's log: a line an event on standard error, for people or as JSON."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES: Final = ("size", "target_size")


def teller(*, as_json: bool) -> Callable[[str, dict[str, Any]], None]:
    """Writes each event as one line to standard error, for people or as JSON."""

    def tell(event: str, what: dict[str, Any]) -> None:
        if as_json:
            at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
            level = "error" if event == "failed" else "info"
            line = json.dumps({"time": at, "level": level, "event": event, **what})
        else:
            words = " ".join(f"{name}={shown(name, value)}" for name, value in what.items())
            line = f"jmxlake: {event} {words}"
        click.echo(line, err=True)

    return tell


def shown(name: str, value: Any) -> str:
    """A figure as people read it."""
    if name not in _SIZES:
        return str(value)
    size = float(value)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
