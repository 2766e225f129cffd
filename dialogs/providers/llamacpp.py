"""llama.cpp's server: chat completions, and a window that it tells exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import openai

from dialogs.providers.addresses import api_root
from dialogs.providers.base import ModelFacts, ModelNotFound, ProviderSettings, RequestRefused
from dialogs.providers.errors import translated
from dialogs.providers.openai_compatible import OpenAICompatible
from dialogs.providers.tokenizing import LLAMACPP, Sizes, measure
from dialogs.providers.usage import as_mapping, whole


class LlamaCpp(OpenAICompatible):
    kind: ClassVar[str] = "llamacpp"

    @staticmethod
    def base(base_url: str) -> str:
        return f"{api_root(base_url)}/v1"

    async def read_limits(self, model_id: str) -> ModelFacts:
        """The window of one request: `/props` states the context of a slot; else the list of models states it."""
        listed = await super().read_limits(model_id)
        with translated(openai, self.settings):
            window = await self._slot() or await self._slot(model_id) or listed.context_length
        return replace(listed, context_length=window)

    @classmethod
    def count_tokens(cls, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float) -> Sizes:
        return measure(LLAMACPP, settings, texts, model, seconds=seconds)

    async def _slot(self, model_id: str = "") -> int | None:
        """A server that routes to several models answers 0, a dummy, unless it is asked for one of them."""
        try:
            props = await self._props({"model": model_id} if model_id else {})
        except (ModelNotFound, RequestRefused, openai.NotFoundError, openai.BadRequestError):
            return None
        return whole(as_mapping(as_mapping(props).get("default_generation_settings")).get("n_ctx")) or None

    async def _props(self, query: dict[str, object]) -> Any:
        return await self._get(f"{api_root(self.settings.base_url)}/props", query)
