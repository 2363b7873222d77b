"""The programs that judge the Terraform modules, as `scripts/install.sh` installs them, or names
them where they are missing.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.components import Components

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
MODULES = INFRA / "terraform"
EXAMPLES = INFRA / "examples"
QUIET = {"TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1", "LOG_LEVEL": "ERROR"}


def installed(name: str, components: Components) -> Path:
    """Waits for an installation that is under way; ends the test where there is none."""
    script = ROOT / "scripts" / "install.sh"
    done = subprocess.run([script, "--where", name], capture_output=True, text=True, check=False)
    if done.returncode:
        components.missing(name, f"scripts/install.sh {name}")
    return Path(done.stdout.strip())


def run(
    command: Sequence[str | Path], at: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """In the folder `at`, with nothing of this machine's configuration."""
    return subprocess.run(
        command,
        cwd=at,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **QUIET, **(environment or {})},
    )


def module_folders() -> list[Path]:
    """Of modules and examples."""
    return sorted({path.parent for path in INFRA.glob("*/*/*.tf")})
