"""Who can be asked: each provider is tried, and each LLM's limits are read for what is missing or odd."""

from __future__ import annotations

from collections.abc import Iterator

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import DatabaseError

from dialogs.llms.catalogue import ignored_values
from dialogs.llms.reads.providers import configured, list_providers, missing_key, settings_for
from dialogs.llms.words import better_as_ollama, command_for_ollama, kept_by_llm
from dialogs.models import LLM, Provider
from dialogs.models.llm import Compaction, Origin
from dialogs.providers import probe
from dominds.doctor.findings import Finding, note, ok, wrong
from dominds.supervisor import lock
from health.monitor.levels import context_window, thresholds

# More would bury what is wrong.
MOST_LLMS = 20


def providers() -> Iterator[Finding]:
    try:
        found = list(list_providers(enabled_only=True))
    except DatabaseError:
        yield note("providers", "cannot be read before the database is well")
        return
    keyless = [provider for provider in found if missing_key(provider)]
    for provider in found:
        if provider not in keyless:
            yield examined(provider)
    if keyless:
        names = ", ".join(provider.name for provider in keyless)
        yield note("providers", f"without a key: {names}", fix="set a key in the admin, or the variable that it names")
    if len(keyless) == len(found):
        yield wrong(
            "providers", "none can be asked", fix=f"add one: `{settings.COMMAND} provider add --help`, or set a key"
        )


def examined(provider: Provider) -> Finding:
    """Ask it. The demo answers only while `up` runs, which is no fault of its."""
    result = async_to_sync(probe.test_connection)(settings_for(provider))
    name = f"provider {provider.name}"
    # What it says now, which is not written down here; else what it said when it was added or checked.
    is_ollama = provider.is_hidden_ollama if result.is_ollama is None else result.is_ollama
    if result.ok and is_ollama:
        return note(
            name, f"{result.text} {better_as_ollama()}", fix=command_for_ollama(provider.base_url, name="ollama")
        )
    if result.ok:
        return ok(name, result.text)
    if provider.origin == Origin.DEMO and not lock.is_used(settings.DOMINDS_DATA_DIR):
        return note(name, f"runs while `{settings.COMMAND} up` does")
    return wrong(name, result.text, fix="correct its address or its key in the admin")


def limits() -> Iterator[Finding]:
    try:
        llms = list(LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"))
    except DatabaseError:
        return
    for ignored in ignored_values():
        yield wrong("catalogue", str(ignored), fix="write a whole number above zero, or leave it out")
    findings = [finding for llm in llms for finding in of_one_llm(llm)]
    yield from findings
    if not findings and llms:
        yield ok("limits", f"{len(llms)} LLMs, each with a window and ceilings in order")
    yield from overflow([llm for llm in llms if not missing_key(llm.provider)])


def overflow(llms: list[LLM]) -> Iterator[Finding]:
    """How each LLM that can be asked is kept from overflowing."""
    for llm in llms[:MOST_LLMS]:
        state = note if context_window(configured(llm)) is None or llm.compaction == Compaction.OFF else ok
        yield state(f"overflow {llm.slug}", kept_by_llm(llm))
    if len(llms) > MOST_LLMS:
        yield ok("overflow", f"{len(llms) - MOST_LLMS} more: `{settings.COMMAND} provider list`")


def of_one_llm(llm: LLM) -> Iterator[Finding]:
    name, numbers = f"limits of {llm.slug}", configured(llm)
    window = context_window(numbers)
    if window is None:
        yield note(name, "window unknown, so its level is too", fix="`read limits now` in the admin, or type it in")
        return
    ceilings = thresholds(numbers, window=window)
    if ceilings.optimal_max_tokens >= ceilings.critical_max_tokens:
        yield wrong(
            name,
            f"caution begins at {ceilings.optimal_max_tokens:,}, critical at {ceilings.critical_max_tokens:,}: "
            "no room for caution",
            fix="lower optimal_max_tokens in the admin",
        )
    if ceilings.critical_max_tokens > window:
        yield wrong(
            name,
            f"critical begins at {ceilings.critical_max_tokens:,}, above the window of {window:,}",
            fix="lower critical_max_tokens in the admin",
        )
