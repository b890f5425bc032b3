"""Errors of libraries as one line: no backtrace, no secret, no colour.

Both programs print what delta-rs, DuckDB, Spark and HTTP clients raise through ``one_line``, and
``wrong_version`` where they need exactly one version of a library.
"""

import os
import re
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

UNEXPECTED: Final = "unexpected "
"""Starts the line of an error that is a fault of jmxlake."""

HIDDEN: Final = "***"
"""Replaces a secret."""

TRACEBACK: Final = "JMXLAKE_TRACEBACK"
"""Environment variable: if it is set, an unexpected error prints its Python traceback."""

_LONGEST: Final = 500
_MOST: Final = 100_000
"""Characters that are read of an error; callers show some hundreds of them."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m|\u21b3")  # delta-rs writes some errors for terminals
# The first frame has number 0 or 1 and starts a line; "line 3: x" in a message is not a frame.
_RUST_FRAMES: Final = re.compile(
    r"^[ \t]+[01]: \S.*(?:\n[ \t]+(?:\d+: \S|at [^\n]*:\d+).*)*", re.MULTILINE
)
_RUST_NOTES: Final = re.compile(r"^.*\bRUST_(?:LIB_)?BACKTRACE=.*$|^[ \t]*stack backtrace:[ \t]*$",
                                re.MULTILINE)  # fmt: skip
_PYTHON_FRAMES: Final = re.compile(
    r"^[ \t]*Traceback \(most recent call last\):[ \t]*\n(?:[ \t]+.*\n?)*", re.MULTILINE
)
_JAVA_FRAMES: Final = re.compile(r"^[ \t]*(?:at [\w.$/<>@-]+\(.*\)|\.\.\. \d+ more)[ \t]*$",
                                 re.MULTILINE)  # fmt: skip
_VALUE: Final = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s&;,<>'\"]+)"
# A program that hides a secret must not hang on hostile text: every quantifier that may give back
# what it took is bounded, or starts where a word starts.
_DELIMITER: Final = r"[\"']?\s*(?:[=:]|=>)\s*"
_SECRETS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), instead)
    for pattern, instead in (
        # A URL's user and password, not its HOST:PORT; the container of abfss:// is not secret.
        (
            r"(?<=://)(?![^\s/@:]{1,255}:\d{1,5}(?:[/?#,;\s'\")\]]|$))"
            r"[^\s/@:]{0,255}:[^\s@'\"]{0,2000}@",
            f"{HIDDEN}@",
        ),
        (r"((?<!\w)https?://)[^\s/@:'\"]+@", rf"\1{HIDDEN}@"),
        (r"(?<=[\w/])\?[^\s<>'\"=?]*=[^\s<>'\"]*", f"?{HIDDEN}"),  # a query: it may be signed
        (rf"(\bauthorization[\"']?\s*[=:]\s*[\"']?)(?:[A-Z][\w-]*\s+)?{_VALUE}", rf"\1{HIDDEN}"),
        (r"(\bBearer\s+)[^\s&;,<>'\"]+", rf"\1{HIDDEN}"),
        (
            r"((?<![\w-])(?:(?=[\w-]*?(?:token|secret|passw(?:or)?d|passphrase|credential|signature))"
            rf"[\w-]+{_DELIMITER}"
            r"|(?:[\w-]*[_-])?(?:(?:access|account|api|private|shared|storage)[_-]?key(?:[_-]?id)?"
            rf"|sig|sas){_DELIMITER})){_VALUE}",
            rf"\1{HIDDEN}",
        ),
        (r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", HIDDEN),  # an AWS access key
        (r"\beyJ[\w-]{8,2000}\.[\w-]+(?:\.[\w-]*)?", HIDDEN),  # a JSON Web Token
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", HIDDEN),
    )
)  # fmt: skip


def one_line(text: str, secrets: Sequence[str] = ()) -> str:
    """Return an error's text as one line, without backtraces and secrets.

    Args:
        text: The text; of a longer one than ``_MOST`` the rest is left out.
        secrets: Further texts to hide, the longest first.
    """
    line = _COLOURS.sub("", text[:_MOST])
    for pattern in (_PYTHON_FRAMES, _RUST_FRAMES, _RUST_NOTES, _JAVA_FRAMES):
        line = pattern.sub("", line)
    for secret in secrets:
        line = line.replace(secret, HIDDEN)
    for pattern, instead in _SECRETS:
        line = pattern.sub(instead, line)
    return " ".join(line.split())


def printable(text: str) -> str:
    """Return a text with every character that could move a terminal's cursor as an escape."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )


def is_fault(error: BaseException) -> bool:
    """Return True for an error of the program or a library, not for an exit or a signal."""
    return isinstance(error, Exception) or is_panic(error)


def is_panic(error: BaseException) -> bool:
    """Return True for a panic of Rust, which is not an Exception."""
    return type(error).__name__ == "PanicException"


def unexpected(error: BaseException) -> str:
    """Return an unexpected error, and where it was raised, as one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{UNEXPECTED}{type(error).__name__}: {one_line(str(error))[:_LONGEST]}{where}"


def fault(error: BaseException) -> str:
    """Return the last line of a program that an unexpected error ends.

    The traceback is printed before it if the environment asks for it.
    """
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    more = f"set {TRACEBACK}=1 for the traceback"
    return f"{unexpected(error)}: this is a fault of jmxlake, please report it; {more}"


def silence_rust() -> None:
    """Keep the log of Rust libraries off standard error; call it before they are imported.

    Their errors are raised as well. A person who sets RUST_LOG gets the log.
    """
    os.environ.setdefault("RUST_LOG", "off")


PINNED: Final = {"deltalake": "1.6.6", "jmxquery": "0.6.0"}
"""Packages with exactly one supported version. pyproject.toml pins the same versions."""


def wrong_version(package: str) -> str | None:
    """Return the problem if another version of a package is installed. None: no problem."""
    found, wanted = version(package), PINNED[package]
    return None if found == wanted else f"{package} {found} is installed; use {package}=={wanted}"
