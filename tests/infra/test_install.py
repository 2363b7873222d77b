"""scripts/install.sh, with stand-ins for apt-get and sudo."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "install.sh"

# Installs a program that prints the version of a Redis server.
APT_GET = """#!/bin/sh
echo "$@" >>{folder}/calls
printf '#!/bin/sh\\necho Redis server v=8\\n' >{folder}/redis-check-rdb
chmod +x {folder}/redis-check-rdb
"""
SUDO = """#!/bin/sh
shift  # -n
exec "$@"
"""


def test_a_package_of_the_system_is_installed(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-get", APT_GET), ("sudo", SUDO)):
        (programs / name).write_text(text.format(folder=programs))
        (programs / name).chmod(0o755)
    settings = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "BUCKETLOG_CACHE": str(tmp_path / "cache"),
        "CI": "true",
    }

    ended = subprocess.run(
        [SCRIPT, "redis-tls"], env=settings, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert (programs / "calls").read_text() == "install -y redis-tools\n"
    assert (tmp_path / "cache" / "redis-tls" / "redis-server").exists()
