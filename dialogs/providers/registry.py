"""Which class speaks for which kind of provider. A new provider is a new file and one line here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module

from dialogs.providers.addresses import InvalidAddress, clean_base_url
from dialogs.providers.base import NotConfigured, Provider, ProviderSettings


class WindowFrom(Enum):
    """Where the window of a model is known from, besides what an admin writes down."""

    LIST = "its server's list, or a refusal"
    MODEL = "its server, asked about the model where nothing is known"
    LOADED = "its server, asked before each request: it changes whenever a model is loaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What holds for every server of a kind, whichever model it runs.

    `path`: its class, imported only where a provider of the kind is used, as SDKs take seconds to load.
    `cuts_silently`: it reads a part of a prompt that does not fit, and answers as if it had read all.
    `withholds_results`: without a budget, large results of tools are withheld when the context is short.
    `list_is_terse`: a model that is asked about by its name tells more than the list of models does.
    `may_count`: it may count a message's tokens by a request of its own (`/tokenize`).
    `reports_truly`: its report says what it read; a script reports what it likes.
    """

    path: str
    window: WindowFrom = WindowFrom.LIST
    cuts_silently: bool = False
    withholds_results: bool = True
    list_is_terse: bool = False
    may_count: bool = False
    reports_truly: bool = True


KINDS: dict[str, Kind] = {
    "openai": Kind(path="dialogs.providers.openai_compatible:OpenAICompatible", may_count=True),
    "lmstudio": Kind(
        path="dialogs.providers.lmstudio:LMStudio",
        window=WindowFrom.LOADED,
        cuts_silently=True,
        withholds_results=False,
    ),
    "ollama": Kind(path="dialogs.providers.ollama:Ollama", window=WindowFrom.MODEL, list_is_terse=True),
    "llamacpp": Kind(
        path="dialogs.providers.llamacpp:LlamaCpp",
        window=WindowFrom.MODEL,
        list_is_terse=True,
        may_count=True,
    ),
    "anthropic": Kind(path="dialogs.providers.anthropic:Anthropic"),
    "scripted": Kind(path="dialogs.providers.scripted:Scripted", reports_truly=False),
}


def make_provider(settings: ProviderSettings) -> Provider:
    """A provider for one event loop: make it, use it, `aclose` it there. Raises NotConfigured."""
    _refuse_unusable(settings)
    return load(settings.kind)(settings)


def load(kind: str) -> type[Provider]:
    """The class, and with it the SDK: the first time takes seconds. Raises NotConfigured."""
    if kind not in KINDS:
        raise NotConfigured(f"There is no kind of provider called {kind!r}.")
    module, _, name = KINDS[kind].path.partition(":")
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
