"""The machine on which a figure was measured."""

import platform
import subprocess
from typing import Any

import psutil


def machine() -> dict[str, Any]:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "commit": done.stdout.strip() or None,
        "python": platform.python_version(),
        "cpus": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
    }
