"""Reads of providers and LLMs, for the driver, the commands and the admin."""

from __future__ import annotations

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from dialogs.common.secrets import KeyUnreadable, decrypt, key_in_environment, may_hold_key, not_for_keys
from dialogs.models import LLM, Agent, Dialog, Generation, Provider
from dialogs.models.llm import WindowSource
from dialogs.models.provider import ProviderKind
from dialogs.providers.addresses import native_root
from dialogs.providers.base import ProviderSettings
from health.monitor.levels import Configured, Level, context_window, level, thresholds


def configured(llm: LLM) -> Configured:
    """The numbers that decide this LLM's levels."""
    return Configured(
        context_length=llm.context_length,
        input_length=llm.input_length,
        optimal_max_tokens=llm.optimal_max_tokens,
        critical_max_tokens=llm.critical_max_tokens,
        caution_cadence=llm.caution_remediation_cadence_generations,
    )


def loaded_window(llm: LLM) -> int | None:
    """The window with which a model in LM Studio is loaded.

    An admin's number can lower it, not raise it; it counts alone where the server states none.
    """
    typed = llm.context_length if llm.context_length_source == WindowSource.ADMIN else None
    return min((window for window in (llm.detected_context_length, typed) if window), default=None)


def max_output_of(dialog: Dialog) -> int | None:
    """The maximum tokens of an answer: the client's, else the agent's."""
    asked = dialog.client.max_output_tokens if dialog.is_client_driven else None
    return asked or dialog.agent.max_output_tokens


def settings_for(provider: Provider) -> ProviderSettings:
    """Never raises: a problem with the row is in `problem`, and only the call to the provider fails."""
    key, problem = _key(provider)
    return ProviderSettings(
        name=provider.name,
        kind=provider.kind,
        base_url=provider.base_url,
        api_key=key,
        problem=problem,
        connect_timeout=settings.DOMINDS_CONNECT_TIMEOUT,
        read_timeout=settings.DOMINDS_READ_TIMEOUT,
    )


def _key(provider: Provider) -> tuple[str, str]:
    """The stored key, else the environment's; and what is wrong with it."""
    if not provider.api_key_encrypted:
        variable = provider.api_key_env
        problem = not_for_keys(variable) if variable and not may_hold_key(variable) else ""
        return key_in_environment(variable), problem
    try:
        return decrypt(provider.api_key_encrypted), ""
    except KeyUnreadable as error:
        return "", str(error)


def missing_key(provider: Provider) -> str:
    """Why a provider lacks its key; empty if it has one or needs none."""
    variable = key_variable(provider)
    if provider.api_key_encrypted or not variable or key_in_environment(provider.api_key_env):
        return ""
    if not may_hold_key(variable):
        return not_for_keys(variable)
    return _("no key: %(variable)s is not set") % {"variable": variable}


def key_variable(provider: Provider) -> str:
    """The environment variable that holds the provider's key. One of the catalogue's needs it even where an admin took
    its variable away.
    """
    wrote = provider.catalogue_values
    is_theirs = bool(wrote) and provider.base_url == wrote.get("base_url")
    return provider.api_key_env or (wrote.get("api_key_env", "") if is_theirs else "")


def provider_at(*, kind: str, base_url: str) -> Provider | None:
    """The provider of this kind at this address, however its path is written."""
    root, rows = native_root(base_url), Provider.objects.filter(kind=kind).order_by("pk")
    return next((row for row in rows if native_root(row.base_url) == root), None)


def llms_at(*, kind: str, base_url: str) -> QuerySet[LLM]:
    """The LLMs that have been added of the server at this address, with their agents."""
    found = LLM.objects.filter(enabled=True).prefetch_related("agents")
    return found.filter(provider=provider_at(kind=kind, base_url=base_url))


def list_providers(*, enabled_only: bool = False) -> QuerySet[Provider]:
    found = Provider.objects.prefetch_related("llms").order_by("name")
    return found.filter(enabled=True) if enabled_only else found


def providers_ready_by_environment() -> list[Provider]:
    """Hosted providers whose key the environment holds: with one of these no demo is needed."""
    hosted = list_providers(enabled_only=True).exclude(kind=ProviderKind.SCRIPTED).exclude(api_key_env="")
    return [provider for provider in hosted if not missing_key(provider)]


LEVELS_SHOWN = 5


def levels_today(llm: LLM) -> list[Level]:
    """The level of the newest measured prompt of each of the newest dialogs, by the limits in force now."""
    window = context_window(configured(llm))
    if window is None:
        return []
    limits = thresholds(configured(llm), window=window)
    measured = Generation.objects.filter(dialog=OuterRef("pk"), prompt_tokens__isnull=False).order_by("-id")
    newest = Dialog.objects.filter(llm=llm).annotate(prompt=Subquery(measured.values("prompt_tokens")[:1]))
    prompts = newest.exclude(prompt=None).order_by("-active_at").values_list("prompt", flat=True)
    return [level(prompt, limits) for prompt in prompts[:LEVELS_SHOWN]]


def choosable_agents() -> QuerySet[Agent]:
    """Enabled ones whose LLM and provider are enabled too; demos last. Those that stand for an LLM are no choice."""
    return Agent.objects.filter(
        is_direct=False, enabled=True, llm__enabled=True, llm__provider__enabled=True
    ).select_related("llm__provider")
