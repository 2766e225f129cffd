"""The two lists of models that LM Studio serves beside OpenAI's, read into facts. Pure.

Version 1 (since 0.4.0) names models by `key` and lists their loaded instances; version 0 (since 0.3.6) lists
models by `id`, each with its state. None for a body that is no such list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from dialogs.providers.base import ModelFacts
from dialogs.providers.usage import whole
from dialogs.providers.wire import as_list, as_mapping, as_text

V1, V0 = "/api/v1/models", "/api/v0/models"
EMBEDDING = "embedding"


@dataclass(frozen=True)
class Listed:
    """A loaded instance, or a model that is not loaded. `model` is what both are instances of."""

    model: str
    facts: ModelFacts


def of_v1(body: object) -> tuple[Listed, ...] | None:
    models = as_mapping(body).get("models")
    return tuple(one for model in _chatting(models) for one in _of_v1(model)) if isinstance(models, list) else None


def of_v0(body: object) -> tuple[Listed, ...] | None:
    models = as_mapping(body).get("data")
    return tuple(_of_v0(model) for model in _chatting(models) if model.get("id")) if isinstance(models, list) else None


def _chatting(models: object) -> Iterator[Mapping[str, Any]]:
    """Without those that only embed."""
    for model in map(as_mapping, as_list(models)):
        if not as_text(model.get("type")).startswith(EMBEDDING):
            yield model


def _of_v1(model: Mapping[str, Any]) -> Iterator[Listed]:
    key, maximum = as_text(model.get("key")), whole(model.get("max_context_length")) or None
    about = _about(
        model.get("architecture"), model.get("params_string"), as_mapping(model.get("quantization")).get("name")
    )
    instances = [as_mapping(instance) for instance in as_list(model.get("loaded_instances"))]
    for instance in instances:
        window = whole(as_mapping(instance.get("config")).get("context_length")) or None
        yield Listed(key, _loaded(as_text(instance.get("id")) or key, window, maximum, V1, about))
    if key and not instances:
        yield Listed(key, _unloaded(key, maximum, about))


def _of_v0(model: Mapping[str, Any]) -> Listed:
    name, maximum = as_text(model.get("id")), whole(model.get("max_context_length")) or None
    about = _about(model.get("arch"), model.get("quantization"))
    if model.get("state") != "loaded":
        return Listed(name, _unloaded(name, maximum, about))
    return Listed(name, _loaded(name, whole(model.get("loaded_context_length")) or None, maximum, V0, about))


def _loaded(name: str, window: int | None, maximum: int | None, path: str, about: str) -> ModelFacts:
    source = _("of the loaded instance, %(path)s") % {"path": path} if window else ""
    note = about if window else _("Loaded, but LM Studio does not say with which window. Load it again.")
    return ModelFacts(model_id=name, context_length=window, maximum=maximum, loaded=True, source=source, note=note)


def _unloaded(name: str, maximum: int | None, about: str) -> ModelFacts:
    note = _("Not loaded. Load it in LM Studio: only then it has a window.")
    if maximum:
        note += " " + _("It can be loaded with %(maximum)s tokens at most.") % {"maximum": f"{maximum:,}"}
    return ModelFacts(model_id=name, maximum=maximum, loaded=False, note=f"{note} ({about})" if about else note)


def _about(*facts: object) -> str:
    """What tells two models apart: architecture, size, quantization."""
    return ", ".join(filter(None, map(as_text, facts)))
