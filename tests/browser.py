"""The browser of the end-to-end tests, and for pictures of Chinese pages a font. `python -m tests.browser` installs
a browser where there is none.

Debian's Chromium where it can be had, because it needs no download host of its own; else playwright's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHINESE_FONT = "fonts-noto-cjk"


def executable() -> str | None:
    """A browser of this machine; None means playwright's own."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    if executable():
        return
    if _may_install():
        _install("chromium")
    else:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


def install_chinese_font() -> None:
    """Without one Chromium draws boxes. Ends the program where it can't be had."""
    if subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=True).stdout.strip():
        return
    if not _may_install():
        sys.exit(f"No font has Chinese characters: install one first (Debian: {CHINESE_FONT}).")
    _install(CHINESE_FONT)


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(package: str) -> None:
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], check=True)


if __name__ == "__main__":
    install()
