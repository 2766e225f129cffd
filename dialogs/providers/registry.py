"""Which class speaks for which kind of provider. A new provider is a new file and one line here."""

from __future__ import annotations

from importlib import import_module

from dialogs.providers.base import Provider, ProviderSettings

# Import paths, so that an SDK is loaded only where a provider of its kind is used.
KINDS: dict[str, str] = {
    "openai": "dialogs.providers.openai_compatible:OpenAICompatible",
    "llamacpp": "dialogs.providers.llamacpp:LlamaCpp",
    "anthropic": "dialogs.providers.anthropic:Anthropic",
    "scripted": "dialogs.providers.scripted:Scripted",
}


def make_provider(settings: ProviderSettings) -> Provider:
    """A provider for one event loop: make it, use it, `aclose` it there."""
    module, _, name = KINDS[settings.kind].partition(":")
    provider: Provider = getattr(import_module(module), name)(settings)
    return provider
