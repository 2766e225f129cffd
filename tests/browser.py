"""The browser of the end-to-end tests. `python -m tests.browser` installs one where there is none.

Debian's Chromium where it can be had, because it needs no download host of its own; else playwright's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """A browser of this machine; None means playwright's own."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    if executable():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], check=True)
    else:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


if __name__ == "__main__":
    install()
