"""Bytes are found in what is mapped, up to its last one and not a byte further."""

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from queues.store.disk import find_bytes

ROOT = Path(__file__).resolve().parents[3]
#: Of two pages the second cannot be read: whoever reads a byte behind the first dies.
AT_A_PRECIPICE = """
import ctypes, mmap
from queues.store.disk import find_bytes
page = mmap.PAGESIZE
both = mmap.mmap(-1, 2 * page)
both[page - 4 : page] = b"last"
start = ctypes.addressof(ctypes.c_char.from_buffer(both))
if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + page), page, 0):
    raise OSError
for at in range(0, page - 4, 7):
    assert find_bytes(both, b"last", at, page) == page - 4
    assert find_bytes(both, b"none", at, page) == -1
print("alive")
"""


@given(st.binary(max_size=12), st.integers(0, 14), st.integers(0, 14), st.data())
def test_it_finds_what_bytes_find(memory: bytes, start: int, end: int, data: st.DataObject) -> None:
    wanted = data.draw(
        st.one_of(st.binary(min_size=1, max_size=3), st.just(memory[start : start + 2] or b"x"))
    )
    assert find_bytes(memory, wanted, start, end) == memory.find(wanted, start, end)


def test_not_a_byte_behind_the_last_page_is_read() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_A_PRECIPICE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-500:]
