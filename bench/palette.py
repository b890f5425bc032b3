"""Pictures made small: a PNG of a browser as one with a palette of 256 colours."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np

_MAGIC: Final = b"\x89PNG\r\n\x1a\n"
_CHANNELS: Final = {2: 3, 6: 4}
_COLOURS: Final = 256
_STEPS: Final = (0, 2, 3, 4, 5)
"""How many low bits of a colour are dropped, until few enough colours are left for most pixels."""


def pixels(png: bytes) -> np.ndarray:
    """The picture as height x width x 3 bytes; what is transparent in it is not looked at.

    Raises:
        ValueError: It is no PNG of 8 bits a channel, in one pass, as browsers write them.
    """
    if png[:8] != _MAGIC:
        raise ValueError("no PNG")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", png[16:29])
    if depth != 8 or colour not in _CHANNELS or interlaced:
        raise ValueError("a PNG of another kind than browsers write")
    size = _CHANNELS[colour]
    packed = b"".join(data for kind, data in _chunks(png) if kind == b"IDAT")
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width * size + 1)
    return _unfiltered(lines, size).reshape(height, width, size)[:, :, :3]


def packed(picture: np.ndarray) -> bytes:
    """A picture as a PNG with a palette; rare colours become the nearest frequent one."""
    height, width, _ = picture.shape
    wide = picture.astype(np.uint32)
    colours = (wide[:, :, 0] << 16) | (wide[:, :, 1] << 8) | wide[:, :, 2]
    found, index, counts = np.unique(colours, return_inverse=True, return_counts=True)
    chosen = found[_frequent(found, counts)]
    nearest = np.abs(_parts(found)[:, None, :] - _parts(chosen)[None, :, :]).sum(axis=2)
    lines = nearest.argmin(axis=1).astype(np.uint8)[index.reshape(height, width)]
    body = np.hstack([np.zeros((height, 1), np.uint8), lines]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = _parts(chosen).astype(np.uint8).tobytes()
    data = zlib.compress(body, 9)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", data), (b"IEND", b""))
    return _MAGIC + b"".join(_chunk(*one) for one in chunks)


def _frequent(found: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Indices of at most 256 colours that stand for all: of those alike the most frequent one."""
    for bits in _STEPS:
        mask = (0xFF << bits & 0xFF) * 0x010101
        _, alike = np.unique(found & mask, return_inverse=True)
        order = np.lexsort((-counts.astype(np.int64), alike))
        first = order[np.unique(alike[order], return_index=True)[1]]
        if len(first) <= _COLOURS:
            return first
    weight = np.bincount(alike, counts)
    return first[np.argsort(-weight)[:_COLOURS]]


def _parts(colours: np.ndarray) -> np.ndarray:
    return np.stack([colours >> 16 & 0xFF, colours >> 8 & 0xFF, colours & 0xFF], axis=1).astype(int)


def _unfiltered(lines: np.ndarray, size: int) -> np.ndarray:
    """Scan lines without the filters of PNG (RFC 2083, chapter 6)."""
    made = np.zeros((lines.shape[0], lines.shape[1] - 1), np.uint8)
    above = np.zeros(lines.shape[1] - 1, np.uint8)
    for number, line in enumerate(lines):
        kind, raw = line[0], line[1:]
        if kind == 0:
            above = raw
        elif kind == 1:
            above = np.cumsum(raw.reshape(-1, size), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            above = raw + above
        else:
            above = _walked(int(kind), raw.tolist(), above.tolist(), size)
        made[number] = above
    return made


def _walked(kind: int, raw: list[int], above: list[int], size: int) -> np.ndarray:
    """The filters Average and Paeth, which look at the byte just made."""
    made = [0] * size
    corner = [0] * size + above
    for at, one in enumerate(raw):
        left, up, before = made[at], above[at], corner[at]
        made.append((one + ((left + up) // 2 if kind == 3 else _paeth(left, up, before))) & 0xFF)
    return np.array(made[size:], np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
