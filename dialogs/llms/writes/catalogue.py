"""The catalogue of providers and models: the built-in file and the override file are written to the rows at every
start, except for fields that an admin has edited.

Each row keeps the values that the catalogue wrote last (`catalogue_values`). A field with that value follows the
catalogue; another value was set by an admin and stays. Rows that the catalogue no longer names are switched off, not
deleted, since dialogs may need them. `catalogue_file.py` parses a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from dialogs.llms.catalogue_file import CatalogueError, ModelEntry, ProviderEntry, read_catalogue
from dialogs.llms.writes.providers import small_window_ceiling
from dialogs.models import LLM, Provider
from dialogs.models.llm import WindowSource
from dialogs.models.provider import Origin

BUILT_IN = Path(settings.BASE_DIR) / "dominds" / "defaults.yaml"
OURS = (Origin.CATALOGUE, Origin.FILE)


def load_catalogue() -> None:
    """Write both files to the rows. Raises CatalogueError, and writes nothing, if one is wrong."""
    write_catalogue(_catalogue())


def catalogue_problem() -> CatalogueError | None:
    """What would stop a load, for the system checks."""
    try:
        _catalogue()
    except CatalogueError as error:
        return error
    return None


def ignored_values() -> list[CatalogueError]:
    """The values of the override file that are ignored; empty if it cannot be read."""
    ignored: list[CatalogueError] = []
    with suppress(CatalogueError):
        _override(ignored)
    return ignored


def _catalogue() -> dict[str, SourcedProvider]:
    """A provider of the override file replaces the built-in one of the same name completely."""
    built_in = {name: SourcedProvider(entry=entry, origin=Origin.CATALOGUE) for name, entry in _read(BUILT_IN).items()}
    override = {name: SourcedProvider(entry=entry, origin=Origin.FILE) for name, entry in _override().items()}
    return built_in | override


def _override(ignored: list[CatalogueError] | None = None) -> dict[str, ProviderEntry]:
    """The override file. It may be missing, unless its path was configured."""
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


@dataclass(frozen=True, kw_only=True)
class SourcedProvider:
    """A provider of the catalogue, and whether the override file brought it."""

    entry: ProviderEntry
    origin: str


@transaction.atomic
def write_catalogue(catalogue: Mapping[str, SourcedProvider]) -> None:
    """Make the rows follow the catalogue. Two reads and no write when nothing has changed."""
    providers = {row.name: row for row in Provider.objects.all()}
    llms = {(row.provider_id, row.model_id): row for row in LLM.objects.select_related("provider")}
    for name, sourced in catalogue.items():
        row = providers.get(name) or Provider(name=name, origin=sourced.origin)
        if row.origin not in OURS:
            continue
        _follow(row, _provider_values(sourced.entry), origin=sourced.origin)
        for model_id, entry in sourced.entry.models.items():
            llm = llms.get((row.pk, model_id)) or LLM(provider=row, model_id=model_id, origin=sourced.origin)
            if llm.origin in OURS:
                _follow(llm, _model_values(entry), origin=sourced.origin)
    _switch_off(catalogue, providers=list(providers.values()), llms=list(llms.values()))


def _provider_values(entry: ProviderEntry) -> dict[str, Any]:
    return {
        "label": entry.name,
        "kind": str(entry.kind),
        "base_url": entry.base_url,
        "api_key_env": entry.api_key_env,
        "enabled": True,
    }


def _model_values(entry: ModelEntry) -> dict[str, Any]:
    values = asdict(entry) | {"enabled": True}
    values["label"] = values.pop("name")
    window = entry.context_length or entry.input_length
    values["optimal_max_tokens"] = entry.optimal_max_tokens or small_window_ceiling(window)
    return values


def _follow(row: Provider | LLM, values: Mapping[str, Any], *, origin: str) -> None:
    """Set what was not edited here, and remember what the catalogue says now."""
    is_new = row.pk is None
    before = _state(row, values)
    for name, value in values.items():
        if is_new or _follows(row, name):
            _set(row, name, value)
    row.catalogue_values, row.origin = dict(values), origin
    if is_new or before != _state(row, values):
        row.save()


def _state(row: Provider | LLM, values: Mapping[str, Any]) -> list[Any]:
    return [row.catalogue_values, row.origin, *(getattr(row, name) for name in values)]


def _follows(row: Provider | LLM, name: str) -> bool:
    """Whether this field still holds what the catalogue wrote. A window from a server or an admin does not."""
    if name == "context_length" and isinstance(row, LLM) and row.context_length_source not in {"", WindowSource.FILE}:
        return False
    wrote = row.catalogue_values if name in row.catalogue_values else {name: getattr(type(row)(), name)}
    return bool(getattr(row, name) == wrote[name])


def _set(row: Provider | LLM, name: str, value: Any) -> None:
    setattr(row, name, value)
    # The input length is the window where there is no context length: it has the same source.
    if isinstance(row, LLM) and (name == "context_length" or (name == "input_length" and value)):
        row.context_length_source = WindowSource.FILE if value else ""


def _switch_off(catalogue: Mapping[str, SourcedProvider], *, providers: list[Provider], llms: list[LLM]) -> None:
    """Rows that came from a catalogue which no longer names them. An admin who switched one on again keeps it."""
    gone: list[Provider | LLM] = [row for row in providers if row.name not in catalogue]
    gone += [
        row
        for row in llms
        if row.provider.name in catalogue and row.model_id not in catalogue[row.provider.name].entry.models
    ]
    for row in gone:
        if row.origin in OURS and row.catalogue_values.get("enabled") and row.enabled:
            row.enabled = False
            row.catalogue_values = {**row.catalogue_values, "enabled": False}
            row.save(update_fields=["enabled", "catalogue_values"])
