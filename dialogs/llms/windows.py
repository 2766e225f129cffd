"""The present size of the window, read from the server where it can change at any time.

LM Studio loads and unloads models by itself, and cuts silently what does not fit: without a window that was read some
seconds ago, nothing is sent to it. Other servers refuse what does not fit, so their window may be unknown. Also what
use has taught of a window, for the panel and the admin.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.threads import in_db
from dialogs.llms.guard import bounds_of, is_window_as_loaded, kind_of
from dialogs.llms.reads import configured, loaded_window, settings_for
from dialogs.llms.writes.providers import claim_loading, end_loading, record_limits
from dialogs.models import LLM, Generation
from dialogs.models.llm import WindowSource
from dialogs.providers import probe
from dialogs.providers.base import LimitUnavailable, ModelFacts, ProviderError, SwitchedOff
from dialogs.providers.registry import WindowFrom
from health.models import LlmCalibration
from health.monitor.levels import context_window
from health.tokens.windows import Bounds, is_doubted

logger = logging.getLogger(__name__)
FRESH = timedelta(seconds=60)
# Shorter than loading a model takes.
FRESH_AS_LOADED = timedelta(seconds=5)
LOOK_EVERY_SECONDS = 1.0
# An answer that has come, or a refusal, waits no longer for a window that is read again.
PATIENCE_SECONDS = 3.0


async def fresh_window(llm: LLM) -> int | None:
    """The window to count with; None where it is unknown and the server refuses what does not fit.

    Raises LimitUnavailable for an LM Studio that has no window, what asking it raised, and SwitchedOff where nobody is
    to be asked: a dialog may have begun before, or have come in a file.
    """
    if not llm.is_usable:
        raise SwitchedOff
    if is_window_as_loaded(llm):
        return await _loaded_window(llm)
    if must_be_asked(llm):
        # A server that cannot say may still answer.
        with suppress(ProviderError):
            await _read(llm)
    return context_window(configured(llm))


def must_be_asked(llm: LLM) -> bool:
    """Must the window be read from the server before each request?"""
    if is_window_as_loaded(llm):
        return True
    return kind_of(llm).window is WindowFrom.MODEL and not llm.context_length and _stale(llm)


def tells_window(llm: LLM) -> bool:
    """Can the LLM's server be asked for its window? Then the row may change at any time."""
    return kind_of(llm).window is not WindowFrom.LIST


async def refusal(llm: LLM) -> ProviderError | None:
    """Read the window again; the error, if nothing may be sent."""
    try:
        await fresh_window(llm)
    except ProviderError as error:
        return error
    return None


async def window_now(llm: LLM) -> int | None:
    """The window, read from the server again; None if it states none or does not answer soon."""
    settings, facts = await in_db(settings_for)(llm.provider), ModelFacts(model_id=llm.model_id)
    with suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            facts = await probe.read_limits(settings, llm.model_id)
    if facts.context_length:
        await in_db(record_limits)(llm=llm, facts=facts)
    return facts.context_length


async def _loaded_window(llm: LLM) -> int:
    # One that was not loaded a moment ago may be by now.
    facts = await _read(llm) if _stale(llm) or not llm.detected_context_length else None
    if llm.load_with and facts and facts.loaded is False:
        facts = await _load(llm, llm.load_with)
    window = loaded_window(llm)
    if window is None:
        refused = LimitUnavailable(_unavailable(llm, facts.note if facts else ""))
        logger.warning("%s", refused)
        raise refused
    return window


def _unavailable(llm: LLM, note: str) -> str:
    said = _("LM Studio does not tell how large the context window of “%(model)s” is, so nothing was sent to it.")
    do = note or _("Load the model in LM Studio, or let an admin set its context length.")
    return f"{said % {'model': llm.model_id}} {do}"


async def _load(llm: LLM, tokens: int) -> ModelFacts:
    """Have the model loaded with the admin's window; wait if another process is having it loaded."""
    settings = await in_db(settings_for)(llm.provider)
    most = timedelta(seconds=settings.read_timeout)
    if await in_db(claim_loading)(llm=llm, for_at_most=most):
        logger.info("Loading %s with a window of %s tokens", llm.model_id, tokens)
        try:
            await probe.load(settings, llm.model_id, context_length=tokens)
        finally:
            await in_db(end_loading)(llm=llm)
        return await _read(llm)
    until = timezone.now() + most
    while True:
        facts = await _read(llm)
        if facts.loaded or timezone.now() > until:
            return facts
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def _read(llm: LLM) -> ModelFacts:
    """Ask the server for the window, and store it."""
    provider = llm.provider
    facts = await probe.read_limits(await in_db(settings_for)(provider), llm.model_id)
    await in_db(_record)(llm, facts)
    llm.provider = provider
    return facts


def _record(llm: LLM, facts: ModelFacts) -> None:
    """The row is read again, and forgets the rows that belong to it: they are needed where nobody can ask for them."""
    record_limits(llm=llm, facts=facts)
    bounds_of(llm)
    with suppress(LlmCalibration.DoesNotExist):
        llm.calibration  # noqa: B018  reading it keeps it


def _stale(llm: LLM) -> bool:
    fresh = FRESH_AS_LOADED if is_window_as_loaded(llm) else FRESH
    return llm.limits_read_at is None or timezone.now() - llm.limits_read_at > fresh


@dataclass(frozen=True, kw_only=True)
class LearnedWindow:
    """`bounds` belong to the LLM: all its dialogs teach and share them."""

    bounds: Bounds
    refusal_is_doubted: bool
    cut_is_doubted: bool
    cuts: int

    @property
    def is_doubted(self) -> bool:
        """Is the bound so uncertain that a larger request may be tried?"""
        return self.refusal_is_doubted or self.cut_is_doubted


def learned_window(llm: LLM) -> LearnedWindow | None:
    """The window that reports and refusals taught; None where they taught nothing."""
    known = bounds_of(llm)
    if known == Bounds():
        return None
    now = timezone.now()
    # A window that a refusal named is in force until something larger is read; beside an admin's it is a bound.
    is_bound = bool(known.refused) or (bool(known.window) and llm.context_length_source != WindowSource.REFUSAL)
    return LearnedWindow(
        bounds=known,
        refusal_is_doubted=is_bound and is_doubted(known.refused_at, now),
        cut_is_doubted=bool(known.cut_sent) and is_doubted(known.cut_at, now),
        cuts=Generation.objects.filter(llm=llm, manifest__cut=True).count() if known.cut_at else 0,
    )


def lowered(generation: Generation | None) -> tuple[int, int] | None:
    """(asked, given): the answer's maximum, where it was lowered because only prompt and answer together were more
    than the window."""
    if generation is None:
        return None
    asked, given = generation.manifest.get("asked"), generation.manifest.get("options", {}).get("max_output_tokens")
    return (asked, given) if asked and given and asked > given else None


def most_asked(generation: Generation | None) -> int | None:
    """The answer's maximum, where the answer ended there and the maximum was all that was asked for; also where the
    server does not count what it wrote."""
    if generation is None or generation.finish_reason != "length" or lowered(generation):
        return None
    most = generation.manifest.get("options", {}).get("max_output_tokens")
    return most if most and generation.completion_tokens in (most, None) else None
