"""Names that clients may call themselves: what the lake must hold, and what it must refuse."""

from __future__ import annotations

from typing import Final

from lakehouse.tables import LONGEST_NAME

HELD: Final = (
    "plain",
    "app:one,x=y",
    "*?=,:",
    'q"uo"te\\',
    '\\"' * 400,
    '"',
    "\\",
    "line\nbreak\r\ttab",
    "nul\x00bell\x07escape\x1b[2Jdelete\x7f",
    " spaces ",
    "%41%zz+100%",
    "é ß 中文",
    "😀𝄞",
    "e\u0301 and é",  # the same to the eye
    "\u202eright to left\u2028line\ufeff",
    "\ufffd\uffff",
    "__other",
    "NaN",
    "null",
    "x" * LONGEST_NAME,
    "é" * (LONGEST_NAME // 2),
)
"""These survive bit for bit."""

REFUSED: Final = (
    "x" * (LONGEST_NAME + 1),
    "é" * (LONGEST_NAME // 2) + "x",
    "n" * 32_767,
    "😀" * 8_000,
    "half\ud83d",
    "\udc00",
    "__other__",
    "__other__ and more",
)
"""These are folded into ``__other__`` and counted."""
