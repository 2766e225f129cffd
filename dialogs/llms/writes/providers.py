"""Every write about providers, LLMs and the agents made for them. Calling a provider is `providers/probe.py`'s work.

Limits have three sources, in this order: an admin, the server, the catalogue. All are stored, so that pages can show
them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from dialogs.common.secrets import encrypt, may_hold_key, not_for_keys
from dialogs.llms.reads import provider_at, providers_ready_by_environment
from dialogs.models import LLM, Agent, LlmBounds, Provider
from dialogs.models.llm import ToolCalling, WindowSource
from dialogs.models.provider import Origin, ProviderKind
from dialogs.providers.addresses import InvalidAddress, clean_base_url
from dialogs.providers.base import ModelFacts
from health.tokens.windows import after_reload

# Up to this window the default ceilings (100,000 and nine tenths of the window) would leave caution no room.
SMALL_WINDOW = 111_112


class InvalidProvider(ValueError):
    """`str(error)` is a translated sentence that says which field is wrong."""


@transaction.atomic
def add_provider(
    *,
    name: str,
    kind: str,
    base_url: str,
    label: str = "",
    api_key: str = "",
    api_key_env: str = "",
) -> Provider:
    """A new provider. Raises InvalidProvider, also when the name is taken."""
    try:
        address = clean_base_url(base_url, kind=kind)
    except InvalidAddress as error:
        raise InvalidProvider(str(error)) from error
    provider = Provider(name=name, kind=kind, base_url=address, label=label, api_key_env=api_key_env.strip())
    _check(provider)
    if provider.api_key_env and not may_hold_key(provider.api_key_env):
        raise InvalidProvider(not_for_keys(provider.api_key_env))
    provider.save()
    if api_key:
        set_api_key(provider=provider, key=api_key)
    return provider


@transaction.atomic
def set_api_key(*, provider: Provider, key: str) -> None:
    """Store a key, encrypted; an empty one removes what is stored."""
    key = clean_api_key(key)
    provider.api_key_encrypted = encrypt(key) if key else ""
    provider.save(update_fields=["api_key_encrypted"])


def clean_api_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        # The error does not quote the key.
        raise InvalidProvider(_("A key is one word of plain letters, digits and signs."))
    return key


def record_server(*, provider: Provider, is_ollama: bool | None) -> None:
    """Keep what a server said of itself, at the address that it has now. None: it did not say."""
    if is_ollama is not None:
        provider.is_ollama, provider.asked_at_url = is_ollama, provider.base_url
        provider.save(update_fields=["is_ollama", "asked_at_url"])


@transaction.atomic
def add_llm(*, provider: Provider, model_id: str, facts: ModelFacts | None = None) -> LLM:
    """This model of the provider, made when it is new; `facts` are recorded either way."""
    found = LLM.objects.filter(provider=provider, model_id=model_id).first()
    llm = found or LLM(provider=provider, model_id=model_id)
    if found is None:
        _check(llm)
        llm.save()
    if facts is not None:
        record_limits(llm=llm, facts=facts)
    return llm


@transaction.atomic
def add_agent(*, llm: LLM) -> Agent:
    """An agent to talk to this LLM with; the one that exists when there is one already."""
    found = llm.agents.filter(is_demo=False).first()
    if found:
        return found
    name = (llm.label or llm.model_id)[:120]
    return Agent.objects.create(name=name, slug=_free_slug(llm.model_id), llm=llm)


@transaction.atomic
def record_limits(*, llm: LLM, facts: ModelFacts) -> str:
    """Keep what a server said of one model, and say in words what came of it.

    What the server said is always kept beside; it comes into force unless an admin set the window.
    """
    llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
    _doubt_bounds(llm, facts.context_length)
    if llm.origin == Origin.DEMO and facts.context_length:
        # llama.cpp rounds what the demo is started with up to 256 tokens.
        facts = replace(facts, context_length=min(facts.context_length, settings.DOMINDS_DEMO_CONTEXT))
    llm.detected_context_length = facts.context_length
    llm.limits_read_at = timezone.now()
    llm.output_length = llm.output_length or facts.output_length
    said = _take_window(llm, facts)
    llm.save()
    return said


def claim_loading(*, llm: LLM, for_at_most: timedelta) -> bool:
    """Claim the right to have a model loaded, so that it is not loaded twice. False if another process has it."""
    now = timezone.now()
    free = Q(loading_until=None) | Q(loading_until__lt=now)
    return bool(LLM.objects.filter(free, pk=llm.pk).update(loading_until=now + for_at_most))


def end_loading(*, llm: LLM) -> None:
    LLM.objects.filter(pk=llm.pk).update(loading_until=None)


def record_tools_refused(*, llm: LLM) -> None:
    """The server will not be offered tools for this model: do not offer them until an admin says so."""
    LLM.objects.filter(pk=llm.pk, tool_calling=ToolCalling.AUTO).update(tool_calling=ToolCalling.REFUSED)


def record_message_shape(*, llm: LLM, shape: str) -> None:
    """The server refused the messages as they were: send them in this shape until an admin says otherwise."""
    LLM.objects.filter(pk=llm.pk).update(message_shape=shape)


def small_window_ceiling(window: int | None) -> int | None:
    """The explicit optimal ceiling that a small window gets, when none is written down."""
    return window * 3 // 4 or None if window and window <= SMALL_WINDOW else None


def _doubt_bounds(llm: LLM, window: int | None) -> None:
    """A server with another window than before was restarted: forget the bounds learned before."""
    row = LlmBounds.objects.select_for_update().filter(llm=llm).first()
    before = llm.detected_context_length or (row.window if row else None)
    if row and window and before and window != before:
        row.known = after_reload(row.known)
        row.save()


def _take_window(llm: LLM, facts: ModelFacts) -> str:
    window = facts.context_length
    if window is None:
        return facts.note or _("The server does not say how large the context window is.")
    if llm.context_length and llm.context_length_source == WindowSource.ADMIN:
        return _("The server says %(read)s tokens; the %(set)s set by an admin stay in force.") % {
            "read": f"{window:,}",
            "set": f"{llm.context_length:,}",
        }
    # A default threshold for the old window follows the new one; an admin's does not.
    follows = llm.optimal_max_tokens in (None, small_window_ceiling(llm.context_length))
    llm.context_length, llm.context_length_source = window, WindowSource.SERVER
    said = _("Context window: %(window)s tokens, read from the server.") % {"window": f"{window:,}"}
    if facts.source:
        said += " " + _("Source: %(source)s.") % {"source": facts.source}
    ceiling = small_window_ceiling(window)
    if follows and llm.optimal_max_tokens != ceiling:
        llm.optimal_max_tokens = ceiling
        if ceiling:
            said += " " + _("Optimal ceiling set to %(ceiling)s.") % {"ceiling": f"{ceiling:,}"}
    return said


def _free_slug(model_id: str) -> str:
    """`meta/llama-3.1:8b` becomes `meta-llama-3-1-8b`; a number is added while that is taken."""
    stem = slugify(model_id.translate(str.maketrans("/.:@_", "-----")))[:50].strip("-") or "agent"
    slug, number = stem, 2
    while Agent.objects.filter(slug=slug).exists():
        slug, number = f"{stem}-{number}", number + 1
    return slug


def _check(row: Provider | LLM) -> None:
    try:
        row.full_clean()
    except ValidationError as error:
        raise InvalidProvider(_sentence(error)) from error


def _sentence(error: ValidationError) -> str:
    """Django's complaints as one line, each with the name of its field."""
    return " ".join(
        f"{'' if field == '__all__' else field + ': '}{message}"
        for field, messages in error.message_dict.items()
        for message in messages
    )


@transaction.atomic
def ensure_agents() -> list[Agent]:
    """Where there is no agent but demos: one for the first LLM of every provider that the environment makes ready.

    So one can chat after setting a key or a file of LLMs, without the admin.
    """
    if Agent.objects.filter(is_demo=False, is_direct=False).exists():
        return []
    from_file = Provider.objects.filter(origin=Origin.FILE, enabled=True, api_key_env="")
    ready = {provider.pk: provider for provider in (*providers_ready_by_environment(), *from_file)}
    first = (provider.llms.filter(enabled=True).order_by("pk").first() for provider in ready.values())
    return [add_agent(llm=llm) for llm in first if llm is not None]


@transaction.atomic
def connect(*, name: str, kind: str, label: str, base_url: str, api_key: str, facts: ModelFacts) -> Agent:
    """An agent for this model of the server at this address. What was switched off is switched on again."""
    provider = provider_at(kind=kind, base_url=base_url)
    if provider is None:
        provider = add_provider(name=_free_name(name), kind=kind, label=label, base_url=base_url, api_key=api_key)
    elif api_key:
        set_api_key(provider=provider, key=api_key)
    llm = add_llm(provider=provider, model_id=facts.model_id, facts=facts)
    agent = add_agent(llm=llm)
    for row in (provider, llm, agent):
        row.enabled = True
        row.save(update_fields=["enabled"])
    return agent


def _free_name(name: str) -> str:
    """`lmstudio`, then `lmstudio-2` for one on another machine."""
    free, number = name, 2
    while Provider.objects.filter(name=free).exists():
        free, number = f"{name}-{number}", number + 1
    return free


NAME = "demo"
# The length of a paragraph: seven such answers fill the window, so a chat of a dozen messages is compacted twice, with
# most of it kept.
MAX_OUTPUT_TOKENS = 128
# Pages translate it.
DESCRIPTION = gettext_noop(
    "A very small model that runs on this machine. For trying things out: do not trust its answers."
)
INSTRUCTIONS = "You are a friendly demo assistant. Answer in a few short sentences."


@transaction.atomic
def install_demo(*, base_url: str, model_id: str) -> Agent:
    """Point the demo at the server that was just configured. What an admin changed about its text stays."""
    provider = _place_provider(base_url)
    llm, _ = LLM.objects.get_or_create(
        provider=provider, model_id=model_id, defaults={"label": "SmolLM2 135M (demo)", "origin": Origin.DEMO}
    )
    _set_window(llm)
    _offer_no_tools(llm)
    agent, _ = Agent.objects.get_or_create(
        slug=NAME,
        defaults={
            "name": "SmolLM2",
            "description": DESCRIPTION,
            "instructions": INSTRUCTIONS,
            "llm": llm,
            "max_output_tokens": MAX_OUTPUT_TOKENS,
            "is_demo": True,
        },
    )
    Agent.objects.filter(pk=agent.pk).update(enabled=True)
    return agent


def _place_provider(base_url: str) -> Provider:
    """Found by its origin, not its name, which an admin's provider may have."""
    provider = Provider.objects.filter(origin=Origin.DEMO).first()
    if provider is None:
        taken = Provider.objects.filter(name=NAME).exists()
        name = f"embedded-{NAME}" if taken else NAME
        # The demo's server answers one request at a time.
        provider = Provider(name=name, label="Demo (this machine)", origin=Origin.DEMO, max_concurrent=1)
    provider.kind, provider.base_url, provider.enabled = ProviderKind.LLAMACPP, base_url, True
    provider.save()
    return provider


def retire_demo() -> None:
    """The embedded server does not run: nobody can start a dialog with the demo; its dialogs stay."""
    Provider.objects.filter(origin=Origin.DEMO).update(enabled=False)
    Agent.objects.filter(slug=NAME, is_demo=True).update(enabled=False)


def _set_window(llm: LLM) -> None:
    """The window is the server's; the ceiling follows it unless an admin chose another."""
    if llm.optimal_max_tokens == small_window_ceiling(llm.context_length):
        LLM.objects.filter(pk=llm.pk).update(optimal_max_tokens=None)
    record_limits(llm=llm, facts=ModelFacts(model_id=llm.model_id, context_length=settings.DOMINDS_DEMO_CONTEXT))


def _offer_no_tools(llm: LLM) -> None:
    """Our tools would fill the window of a demo model, which cannot use them. Written once: an admin may offer them
    again.
    """
    llm.refresh_from_db()
    if "tool_calling" not in llm.catalogue_values:
        llm.tool_calling = ToolCalling.OFF
        llm.catalogue_values = {**llm.catalogue_values, "tool_calling": ToolCalling.OFF}
        llm.save(update_fields=["tool_calling", "catalogue_values"])
