"""Handing memory back: pages of libraries go, what a process changed in a mapped file stays."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.telemetry import memory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_LIBRARIES = """
from pathlib import Path
from collector.telemetry import memory
import deltalake

def resident_kb():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssFile:")[2].split()[0])

memory.trim()
memory.SETTLED_SECONDS = 0.0
before = resident_kb()
memory.trim()
print(before - resident_kb())
assert not deltalake.DeltaTable.is_deltatable("/nowhere")
"""


def test_pages_of_libraries_are_no_longer_resident() -> None:
    command = [sys.executable, "-c", _LIBRARIES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 10_000


_LOADED = """
import ctypes, shutil, sys, threading
from pathlib import Path
from collector.telemetry import memory

loader = ctypes.CDLL(None)  # other than ctypes, it lets other threads of Python go on
loader.dlopen.restype = loader.dlsym.restype = ctypes.c_void_p
loader.dlsym.argtypes = ctypes.c_void_p, ctypes.c_char_p
loader.dlclose.argtypes = (ctypes.c_void_p,)

def load(name):
    for number in range(150):
        copy = Path(sys.argv[2]) / f"{name}-{number}.so"
        shutil.copy(sys.argv[1], copy)
        library = loader.dlopen(bytes(copy), 2)
        version = loader.dlsym(library, b"OpenSSL_version")
        assert ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(version)(0)
        copy.unlink()
        loader.dlclose(library)

threads = [threading.Thread(target=load, args=(name,)) for name in "ab"]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    memory.trim()
"""


def test_a_library_that_is_being_loaded_keeps_what_the_loader_changed(tmp_path: Path) -> None:
    """As Java loads its own at their first use, in any thread."""
    import _ssl  # noqa: PLC0415

    linked = subprocess.run(["ldd", _ssl.__file__], capture_output=True, text=True, check=True)
    (library,) = (line.split()[2] for line in linked.stdout.splitlines() if "libcrypto" in line)
    subprocess.run([sys.executable, "-c", _LOADED, library, str(tmp_path)], check=True, timeout=120)


def test_changed_pages_of_a_mapped_file_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"-" * mmap.PAGESIZE * 2)
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, flags=mmap.MAP_PRIVATE)
    mapped[0:7] = b"changed"
    start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(mapped)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(start, ctypes.c_size_t(len(mapped)), mmap.PROT_READ) == 0

    memory.trim()
    monkeypatch.setattr(memory, "SETTLED_SECONDS", 0.0)
    memory.trim()

    assert mapped[0:8] == b"changed-"
