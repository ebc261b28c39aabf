"""Installs the package and each of its test dependencies that has a wheel for this interpreter."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
_PIP += ["--only-binary", ":all:"]  # a library's sources would take an hour, or compilers


def install() -> int:
    """The exit status: that of pip for the package itself and what it needs in any case."""
    status = subprocess.run([*_PIP, "--editable", str(ROOT)], check=False).returncode
    if status:
        return status
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for requirement in (*extras["test"], *extras["bench"]):
        done = subprocess.run([*_PIP, requirement], check=False, capture_output=True, text=True)
        if done.returncode:
            sys.stdout.write(f"no wheel for this interpreter, tests that need it skip: {requirement}\n")
    return 0


if __name__ == "__main__":
    sys.exit(install())
