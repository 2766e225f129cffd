"""Asks a provider whether it answers, which models it has, and how large their windows are.

For the commands and the admin, never inside a transaction. `llms/writes/providers.py` stores the results.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2
from django.utils.translation import gettext, ngettext

from dialogs.providers.addresses import native_root
from dialogs.providers.base import ModelFacts, Provider, ProviderError, ProviderSettings, ProviderUnreachable
from dialogs.providers.http import connecting
from dialogs.providers.registry import make_provider
from dialogs.providers.usage import as_mapping

# Short: a person waits for the answer, and no model has to generate it.
PATIENCE_SECONDS = 20.0
# The timeout of a request that servers of another kind may not answer.
SHORT_PATIENCE_SECONDS = 3.0
# What Ollama says at the root of its address.
OLLAMA_SAYS = "Ollama is running"


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """`text` is a translated sentence for people; `error_code` is empty when the provider answered.

    `is_ollama`: behind OpenAI's API there is an Ollama; None where it was not asked, or did not answer.
    """

    text: str
    is_ollama: bool | None = None
    models: tuple[ModelFacts, ...] = ()
    error_code: str = ""

    @property
    def ok(self) -> bool:
        return not self.error_code


@asynccontextmanager
async def opened(settings: ProviderSettings) -> AsyncIterator[Provider]:
    provider = make_provider(replace(settings, read_timeout=min(settings.read_timeout, PATIENCE_SECONDS)))
    try:
        yield provider
    finally:
        await provider.aclose()


async def test_connection(settings: ProviderSettings) -> ProbeResult:
    """Ask for the list of models. Never raises a ProviderError: the result says what went wrong."""
    begun = time.monotonic()
    try:
        async with opened(settings) as provider:
            models = await provider.list_models()
    except ProviderError as error:
        is_lost = isinstance(error, ProviderUnreachable) or error.status == 400
        hint = await _other_scheme(settings) if is_lost else ""
        return ProbeResult(text=f"{error} {hint}".strip(), error_code=error.code)
    said = ngettext(
        "The provider answers (%(seconds).1f s) and lists %(count)d model.",
        "The provider answers (%(seconds).1f s) and lists %(count)d models.",
        len(models),
    )
    text = said % {"seconds": time.monotonic() - begun, "count": len(models)}
    return ProbeResult(text=text, is_ollama=await is_ollama(settings), models=models)


async def _other_scheme(settings: ProviderSettings) -> str:
    """What to do where the server speaks http and https is asked for, or the other way round; the key is not sent."""
    scheme, _, rest = settings.base_url.partition("://")
    other = "https" if scheme == "http" else "http"
    hurried = replace(settings, connect_timeout=SHORT_PATIENCE_SECONDS, read_timeout=SHORT_PATIENCE_SECONDS)
    try:
        async with httpx2.AsyncClient(**connecting(hurried)) as client:
            # A server of https says 400 to http.
            speaks = (await client.get(f"{other}://{rest}")).status_code != 400
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        speaks = "CERTIFICATE_VERIFY_FAILED" in str(error)
    if not speaks:
        return ""
    said = gettext("The server speaks %(other)s: write %(other)s:// instead of %(scheme)s:// in the base URL.")
    return said % {"other": other, "scheme": scheme}


async def read_limits(settings: ProviderSettings, model_id: str) -> ModelFacts:
    """What the server says of one model now. Raises a ProviderError."""
    async with opened(settings) as provider:
        return await provider.read_limits(model_id)


async def load(settings: ProviderSettings, model_id: str, *, context_length: int) -> None:
    """Have LM Studio load a model with this window. As patient as with an answer: it may take minutes."""
    provider = make_provider(settings)
    try:
        # Only LM Studio can be asked to load a model, and only it is asked.
        await provider.load(model_id, context_length=context_length)  # type: ignore[attr-defined]
    finally:
        await provider.aclose()


async def is_ollama(settings: ProviderSettings) -> bool | None:
    """Is this OpenAI-compatible server an Ollama? None where it does not answer that, or is of another kind.

    It states its version at its root, and nothing else, or a sentence. Open WebUI answers with more fields. The key is
    not sent, since another server may be at the root.
    """
    if settings.kind != "openai":
        return None
    root = native_root(settings.base_url)
    hurried = replace(settings, connect_timeout=SHORT_PATIENCE_SECONDS, read_timeout=SHORT_PATIENCE_SECONDS)
    try:
        async with httpx2.AsyncClient(**connecting(hurried)) as client:
            version = await client.get(f"{root}/api/version")
            return _is_ollamas_version(version) or OLLAMA_SAYS in (await client.get(f"{root}/")).text[:200]
    except httpx2.HTTPError:
        return None


def _is_ollamas_version(answer: httpx2.Response) -> bool:
    try:
        told = as_mapping(answer.json()) if answer.status_code == 200 else {}
    except ValueError:
        return False
    return list(told) == ["version"] and isinstance(told["version"], str)
