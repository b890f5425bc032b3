"""Runs a command that must end in time and may not say more than it may."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.errors import SourceError
from collector.sources.timeouts import no_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES: Final = 64 * 1024 * 1024
_PIECE: Final = 1024 * 1024


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    output: bytes
    errors: bytes


def run(command: Sequence[str], where: str, seconds: float) -> Ended:
    """Run a command to its end; it is killed if it takes longer or says too much.

    Args:
        command: The program and its arguments.
        where: What is asked, for messages.
        seconds: How long all of it may take.

    Raises:
        SourceTimeoutError: It has not ended in time.
        SourceError: It cannot be started, or says more than 64 MiB.
    """
    deadline = time.monotonic() + seconds
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise SourceError(
            f"{where}: {command[0]} does not start: {error.strerror}; set JAVA_HOME to Java 17"
            " or later"
        ) from None
    with process:
        try:
            output, errors = _said(process, deadline)
            return Ended(process.wait(max(0, deadline - time.monotonic())), output, errors)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise no_answer(where, seconds) from None
        except OverflowError:
            raise SourceError(
                f"{where}: the answer is longer than {MAX_BYTES >> 20} MiB; is that a broker?"
            ) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def _said(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    said = [bytearray() for _ in pipes]
    with selectors.DefaultSelector() as selector:
        for pipe, text in zip(pipes, said, strict=True):
            selector.register(pipe, selectors.EVENT_READ, text)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    selector.unregister(key.fileobj)
            if sum(len(text) for text in said) > MAX_BYTES:
                raise OverflowError
    return bytes(said[0]), bytes(said[1])
