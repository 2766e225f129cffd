"""The catalogue of providers and models: the built-in file, what overrides it, and its way into the rows.

Called at every start. Reading a file is `catalogue_file.py`, writing rows is `llms/writes/catalogue.py`.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from django.conf import settings

from dialogs.llms.catalogue_file import CatalogueError, ProviderEntry, read_catalogue
from dialogs.llms.writes.catalogue import CatalogueReport, Sourced, write_catalogue
from dialogs.models.llm import Origin

__all__ = ["CatalogueError", "CatalogueReport", "catalogue_problem", "ignored_values", "load_catalogue"]

BUILT_IN = Path(settings.BASE_DIR) / "dominds" / "defaults.yaml"


def load_catalogue() -> CatalogueReport:
    """Bring the rows up to date with both files. Raises CatalogueError and writes nothing when one is wrong."""
    return write_catalogue(_catalogue())


def catalogue_problem() -> CatalogueError | None:
    """What would stop a load, for the system checks."""
    try:
        _catalogue()
    except CatalogueError as error:
        return error
    return None


def ignored_values() -> list[CatalogueError]:
    """What the override file says that is not followed. None of a file that cannot be read."""
    ignored: list[CatalogueError] = []
    with suppress(CatalogueError):
        _override(ignored)
    return ignored


def _catalogue() -> dict[str, Sourced]:
    """Whole providers of the override file take the place of built-in ones with the same name."""
    built_in = {name: Sourced(entry=entry, origin=Origin.CATALOGUE) for name, entry in _read(BUILT_IN).items()}
    override = {name: Sourced(entry=entry, origin=Origin.FILE) for name, entry in _override().items()}
    return built_in | override


def _override(ignored: list[CatalogueError] | None = None) -> dict[str, ProviderEntry]:
    """The override file. It may be absent, unless somebody said where it is."""
    path = Path(settings.DOMINDS_LLM_FILE)
    if not path.exists() and not settings.DOMINDS_LLM_FILE_REQUIRED:
        return {}
    return _read(path, ignored)


def _read(path: Path, ignored: list[CatalogueError] | None = None) -> dict[str, ProviderEntry]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CatalogueError(file=str(path), problem="there is no such file (DOMINDS_LLM_FILE names it)") from error
    except OSError as error:
        raise CatalogueError(file=str(path), problem=f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CatalogueError(file=str(path), line=line, problem="is not written in UTF-8") from error
    return read_catalogue(text, file=str(path), ignored=ignored)
