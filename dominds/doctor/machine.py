"""What this machine holds: Python, the packages, the data folder, its disk."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings

from dominds import __version__
from dominds.data_packages import missing_vocabularies
from dominds.doctor.findings import Finding, note, ok, wrong
from dominds.supervisor import preflight
from dominds.supervisor.errors import CannotStart
from dominds.supervisor.valkey import is_embedded, program

REQUIREMENTS = settings.SHARED_DIR / "requirements" / "base.txt"


def install() -> Iterator[Finding]:
    yield ok("install", f"Dominds {__version__}, Python {platform.python_version()}, Django {version('django')}")
    missing = sorted(name for name in required() if not installed(name))
    if missing:
        yield wrong(
            "packages", f"not installed: {', '.join(missing)}", fix="run `make install`, or install dominds again"
        )
    if vocabularies := missing_vocabularies():
        fix = f"run `{settings.COMMAND} fetch_data`"
        yield note("vocabularies", f"tokens are counted less exactly without {' and '.join(vocabularies)}", fix=fix)
    if is_embedded():
        try:
            yield ok("valkey", f"program {program()}")
        except CannotStart as error:
            yield wrong("valkey", "the embedded server's program is missing", fix=str(error))


def required() -> Iterator[str]:
    """The names in requirements/base.txt; markers are for other systems and are taken as met."""
    for line in REQUIREMENTS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split("==")[0].split("[")[0].strip()


def installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def data_folder() -> Iterator[Finding]:
    folder = settings.DOMINDS_DATA_DIR
    try:
        preflight.check_writable(folder)
        preflight.check_disk(folder)
    except CannotStart as error:
        yield wrong("data", f"{folder} cannot be used", fix=str(error))
        return
    if preflight.open_to_others(folder):
        said = f"others on this machine can look into {folder}, which holds everything that people wrote"
        yield wrong("privacy", said, fix=f"chmod -R go= {folder}")
    yield ok("data", f"{folder}, {shutil.disk_usage(folder).free / 1e9:.1f} GB free")
