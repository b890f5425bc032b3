from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest

from bench import palette

WIDTH, HEIGHT = 7, 10


def png(lines: bytes, colour: int) -> bytes:
    """A picture of 7 x 10 pixels, of filtered lines."""
    found = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, colour, 0, 0, 0)
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(kind + data))
        found += struct.pack(">I", len(data)) + kind + data + check
    return found


def filtered(rows: list[list[int]], size: int) -> bytes:
    """Lines with each of PNG's five filters in turn, as the standard writes them."""
    out = bytearray()
    before = [0] * len(rows[0])
    for number, row in enumerate(rows):
        kind = number % 5
        out.append(kind)
        for at, one in enumerate(row):
            left = row[at - size] if at >= size else 0
            corner = before[at - size] if at >= size else 0
            up = before[at]
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda value: abs(guess - value))
            out.append((one - (0, left, up, (left + up) // 2, nearest)[kind]) & 0xFF)
        before = row
    return bytes(out)


@pytest.mark.parametrize(("colour", "size"), [(2, 3), (6, 4)])
def test_every_filter_of_png_is_undone(colour: int, size: int):
    chance = random.Random(colour)
    rows = [[chance.randrange(256) for _ in range(WIDTH * size)] for _ in range(HEIGHT)]
    wanted = np.array(rows, np.uint8).reshape(HEIGHT, WIDTH, size)[:, :, :3]
    assert (palette.pixels(png(filtered(rows, size), colour)) == wanted).all()


def unpacked(made: bytes) -> np.ndarray:
    """The colours of a picture with a palette that has no filters."""
    found = {made[at + 4 : at + 8]: at for at in _chunks(made)}
    data = {kind: _data(made, at) for kind, at in found.items()}
    colours = np.frombuffer(data[b"PLTE"], np.uint8).reshape(-1, 3)
    width, height = struct.unpack(">II", data[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(data[b"IDAT"]), np.uint8).reshape(height, width + 1)
    return colours[lines[:, 1:]]


def _chunks(made: bytes) -> list[int]:
    starts = [8]
    while starts[-1] < len(made):
        (length,) = struct.unpack(">I", made[starts[-1] : starts[-1] + 4])
        starts.append(starts[-1] + 12 + length)
    return starts[:-1]


def _data(made: bytes, at: int) -> bytes:
    (length,) = struct.unpack(">I", made[at : at + 4])
    return made[at + 8 : at + 8 + length]


def test_few_colours_stay_what_they_are():
    picture = np.random.default_rng(1).integers(0, 6, (40, 30, 3)).astype(np.uint8) * 51
    assert (unpacked(palette.packed(picture)) == picture).all()


def test_many_colours_become_near_ones():
    picture = np.random.default_rng(2).integers(0, 256, (60, 60, 3)).astype(np.uint8)
    made = unpacked(palette.packed(picture))
    assert len(np.unique(made.reshape(-1, 3), axis=0)) <= 256
    assert np.abs(made.astype(int) - picture).mean() < 20


@pytest.mark.parametrize("broken", [b"GIF89a", png(b"", 3)])
def test_another_kind_of_picture_is_refused(broken: bytes):
    with pytest.raises(ValueError, match="PNG"):
        palette.pixels(broken)
