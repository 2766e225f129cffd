"""LM Studio: chat completions, and the window of what is *loaded*, read from its own API.

LM Studio silently cuts the middle out of a prompt that does not fit. So a window counts only if the server states that
a model is loaded with it; the model's maximum is recorded, but not taken for the window. LM Studio serves two lists of
models beside OpenAI's. Version 1 (since 0.4.0) names models by `key` and lists their loaded instances; version 0 (since
0.3.6) lists models by `id`, each with its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx2
import openai
from django.utils.translation import gettext as _

from dialogs.providers.addresses import native_root
from dialogs.providers.base import BadAnswer, ModelFacts, ModelNotFound, ProviderSettings
from dialogs.providers.errors import translated
from dialogs.providers.http import json_of
from dialogs.providers.openai_compatible import OpenAICompatible
from dialogs.providers.tokenizing import CannotCount, Sizes
from dialogs.providers.usage import as_list, as_mapping, as_text, whole

LOAD = "/api/v1/models/load"
V1, V0 = "/api/v1/models", "/api/v0/models"
EMBEDDING = "embedding"


class LMStudio(OpenAICompatible):
    kind: ClassVar[str] = "lmstudio"

    @staticmethod
    def base(base_url: str) -> str:
        return f"{native_root(base_url)}/v1"

    @classmethod
    def count_tokens(cls, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float) -> Sizes:
        raise CannotCount("LM Studio has no path for it.")

    async def list_models(self) -> tuple[ModelFacts, ...]:
        return tuple(entry.facts for entry in await self._listed())

    async def read_limits(self, model_id: str) -> ModelFacts:
        facts = _chosen(await self._listed(), model_id)
        if facts.loaded and facts.context_length is None:
            # The newer list states no window: the older one may.
            older = of_v0(await self._body(V0)) or ()
            known = [entry.facts for entry in older if entry.facts.model_id == model_id and entry.facts.context_length]
            return known[0] if known else facts
        return facts

    async def load(self, model_id: str, *, context_length: int) -> None:
        """Have it loaded with this window; returns when it is. Raises a ProviderError, also from a version that
        cannot be asked to."""
        with translated(openai, self.settings):
            answer = await self._client.post(
                f"{native_root(self.settings.base_url)}{LOAD}",
                cast_to=httpx2.Response,
                body={"model": model_id, "context_length": context_length},
            )
            said = as_mapping(json_of(answer))
        if said.get("status") != "loaded":
            raise BadAnswer(f"LM Studio did not load {model_id!r}: {str(said.get('error') or said)[:200]}")

    async def _listed(self) -> tuple[Listed, ...]:
        found = of_v1(await self._body(V1))
        if found is None:
            found = of_v0(await self._body(V0))
        if found is None:
            raise BadAnswer("This is no LM Studio of version 0.3.6 or newer: it does not list its models.")
        return found

    async def _body(self, path: str) -> Any:
        """The response's JSON. None where this version lacks the path: it answers 404, or 200 and an error."""
        with translated(openai, self.settings):
            try:
                return await self._get(f"{native_root(self.settings.base_url)}{path}")
            except openai.NotFoundError:
                return None


def _chosen(listed: tuple[Listed, ...], model_id: str) -> ModelFacts:
    """The instance of this name, else the model of this name.

    A model may be loaded several times with several windows: asked by its own name it may answer with any of
    them, so the smallest counts.
    """
    named = [entry.facts for entry in listed if entry.facts.model_id == model_id]
    named = named or [entry.facts for entry in listed if entry.model == model_id]
    if not named:
        raise ModelNotFound(f"LM Studio does not list a model called {model_id!r}.")
    return min(named, key=lambda facts: facts.context_length or 0)


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
    """The chat models: those that only embed are left out."""
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
    """A note on the model for people: architecture, size, quantization."""
    return ", ".join(filter(None, map(as_text, facts)))
