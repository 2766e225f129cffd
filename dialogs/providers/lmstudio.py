"""LM Studio: chat completions, and the window of what is *loaded*, read from its own API.

What does not fit, LM Studio cuts out of the middle without a word. So a window counts only when the server says
that a model is loaded with it; what the model could have at most stands beside it, and is never taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import httpx2
import openai

from dialogs.providers.addresses import native_root
from dialogs.providers.base import BadAnswer, ModelFacts, ModelNotFound, ProviderSettings
from dialogs.providers.errors import translated
from dialogs.providers.http import json_of
from dialogs.providers.lmstudio_lists import V0, V1, Listed, of_v0, of_v1
from dialogs.providers.openai_compatible import OpenAICompatible
from dialogs.providers.tokenizing import CountsNothing, Sizes
from dialogs.providers.wire import as_mapping

LOAD = "/api/v1/models/load"


class LMStudio(OpenAICompatible):
    kind: ClassVar[str] = "lmstudio"

    @staticmethod
    def base(base_url: str) -> str:
        return f"{native_root(base_url)}/v1"

    @classmethod
    def count_tokens(cls, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float) -> Sizes:
        raise CountsNothing("LM Studio has no path for it.")

    async def list_models(self) -> tuple[ModelFacts, ...]:
        return tuple(entry.facts for entry in await self._listed())

    async def read_limits(self, model_id: str) -> ModelFacts:
        facts = _chosen(await self._listed(), model_id)
        if facts.loaded and facts.context_length is None:
            # The newer list has said no window: the older one may.
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
        """The answer's JSON. None from a version without this path: it answers 404, or 200 and an error."""
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
