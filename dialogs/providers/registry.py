"""Which class speaks for which kind of provider. A new provider is a new file and one line here."""

from __future__ import annotations

from importlib import import_module

from dialogs.providers.addresses import InvalidAddress, clean_base_url
from dialogs.providers.base import NotConfigured, Provider, ProviderSettings

# Import paths, so that an SDK is loaded only where a provider of its kind is used.
KINDS: dict[str, str] = {
    "openai": "dialogs.providers.openai_compatible:OpenAICompatible",
    "lmstudio": "dialogs.providers.lmstudio:LMStudio",
    "ollama": "dialogs.providers.ollama:Ollama",
    "llamacpp": "dialogs.providers.llamacpp:LlamaCpp",
    "anthropic": "dialogs.providers.anthropic:Anthropic",
    "scripted": "dialogs.providers.scripted:Scripted",
}


def make_provider(settings: ProviderSettings) -> Provider:
    """A provider for one event loop: make it, use it, `aclose` it there. Raises NotConfigured."""
    _refuse_unusable(settings)
    return load(settings.kind)(settings)


def load(kind: str) -> type[Provider]:
    """The class, and with it the SDK: the first time takes seconds. Raises NotConfigured."""
    if kind not in KINDS:
        raise NotConfigured(f"There is no kind of provider called {kind!r}.")
    module, _, name = KINDS[kind].partition(":")
    found: type[Provider] = getattr(import_module(module), name)
    return found


def _refuse_unusable(settings: ProviderSettings) -> None:
    if settings.problem:
        raise NotConfigured(settings.problem)
    # A header holds no other characters; the complaint must not quote the key, as the HTTP library would.
    if not (settings.api_key.isascii() and settings.api_key.isprintable()):
        raise NotConfigured("The key holds characters that no key has. Set it again.")
    try:
        clean_base_url(settings.base_url, kind=settings.kind)
    except InvalidAddress as error:
        raise NotConfigured(str(error)) from error
