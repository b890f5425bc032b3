"""Paths in the log of a lake in a bucket, whose files are copied to this machine."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.hostile import delta, rooms, shared
from tests.hostile.case import REFUSED, TAKEN, Case, Command
from tests.hostile.places.delta_log import PATHS
from tests.rig.s3.server import S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from tests.hostile.case import Room

_BUCKET: Final = "lake"
_NAMES: Final = (
    "parents", "parents-encoded", "parents-double-encoded", "parents-inside", "absolute",
    "absolute-encoded", "file-url", "http", "s3", "nul-encoded", "newline", "long", "home", "quote",
)  # fmt: skip

_BELOW: Final = ("home", "quote")
"""Plain keys below the table, where an object is: a bucket has no home and no quotes."""


def cases() -> Iterator[Case]:
    """Each path, through two readers; an object is there wherever the store lets one be."""
    read = ("--options-file", "options.yaml")
    export = ("jmxlake", "export", "@BUCKET@", "clients", "--format", "csv", *read)
    report = ("jmxlake", "report", "@BUCKET@", *rooms.PERIOD, *read)
    for name in _NAMES:
        codes = TAKEN if name in _BELOW else REFUSED
        commands = (Command(export, codes), Command(report, codes))
        yield Case("bucket", name, partial(_lay, path=PATHS[name]), commands)


def _lay(room: Room, path: str) -> None:
    server: S3Server = shared.once("bucket", _started)
    lake = rooms.lake(room)
    place = lake / "gold/clients"
    filled = room.fill(path.replace("@UP@", "../../../").replace("@FILE@", "outside/ran"))
    delta.edit(place, lambda add: add.update(path=filled))
    name = room.path.name
    copy = server.bucket(_BUCKET) / name
    shutil.copytree(lake, copy)
    _put(copy / "gold/clients", filled)
    room.stack.callback(shutil.rmtree, copy, ignore_errors=True)
    room.write("options.yaml", json.dumps(server.options))
    room.places["@BUCKET@"] = f"s3://{_BUCKET}/{name}"


def _put(table: Path, path: str) -> None:
    """An object with the log's path as its key, where a folder can hold it."""
    parts = path.split("/")
    if (
        "://" in path
        or not {"", "..", "."}.isdisjoint(parts)
        or any(len(one) > 200 for one in parts)
    ):
        return
    object_ = table / path
    object_.parent.mkdir(parents=True, exist_ok=True)
    object_.write_bytes(next(table.rglob("*.parquet")).read_bytes())


def _started(folder: Path, stack: ExitStack) -> S3Server:
    return stack.enter_context(S3Server.start(folder, (_BUCKET,)))
