"""What became of other processes."""

from __future__ import annotations

import time
from pathlib import Path


def has_ended(process: int) -> bool:
    """Whether a process ends within ten seconds. Linux; one whose status nobody has asked for yet counts as ended."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False
