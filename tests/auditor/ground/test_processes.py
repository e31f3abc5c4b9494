"""Processes of this machine: who goes first."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(os.name != "posix", reason="Windows has classes in place of numbers")
@pytest.mark.parametrize(("before", "after"), [(0, 5), (12, 12)])
def test_yield_to_others__never_goes_earlier_than_before(before: int, after: int) -> None:
    code = f"""
import os
from auditor.ground.processes import yield_to_others
os.nice({before} - os.nice(0))
yield_to_others()
print(os.nice(0))
"""
    if os.nice(0) > before:
        pytest.skip("these tests go later already")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == after
