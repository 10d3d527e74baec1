from __future__ import annotations

import subprocess
import sys

import pytest

_TWICE = """
import resource
import numpy as np
from lab.bench.measuring.heap import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

assert keep_freed_memory()
np.ones(32 << 20, np.uint8)
before = faults()
np.ones(32 << 20, np.uint8)
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is the GNU C library's")
def test_memory_that_was_freed_is_not_touched_for_the_first_time_again() -> None:
    ran = subprocess.run([sys.executable, "-c", _TWICE], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 1_000  # 32 MB are 8,192 pages
