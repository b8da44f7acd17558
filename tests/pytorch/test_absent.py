"""slangpy without torch: nothing imports it, and what needs it says how to get it."""

from __future__ import annotations

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["torch"] = None
import numpy as np
import slangpy as spy
module = spy.Module.load_from_source(spy.create_device(type=spy.DeviceType.cpu), "absent", "float twice(float x) { return 2 * x; }")
assert module.twice(np.ones(3, np.float32), _result="numpy").tolist() == [2, 2, 2]
assert spy.Function.__call__(module.twice, 3.0) == 6  # what subclasses of users inherit
assert not spy.is_torch_bridge_available() and not spy.is_torch_tensor(1)
assert "torch" in spy.get_torch_bridge_fallback_reason()
for use in (lambda: spy.diff_pair, spy.create_torch_device):
    try:
        use()
    except ImportError as error:
        assert "pip install torch" in str(error)
    else:
        raise AssertionError
"""

LAZY = """
import sys
import numpy as np
import slangpy as spy
module = spy.Module.load_from_source(spy.create_device(type=spy.DeviceType.cpu), "absent", "float twice(float x) { return 2 * x; }")
module.twice(np.ones(3, np.float32))
assert "torch" not in sys.modules
"""


def run(source: str) -> None:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_blocked() -> None:
    run(BLOCKED)


def test_not_imported() -> None:
    run(LAZY)
