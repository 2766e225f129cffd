"""The guard of a dialog: how much its context may take, from when on it is compacted first, and by which strategies.

Every dialog has one if its window is known or was learned, whoever drives it and whatever the provider. All tokens here
are estimated; measured tokens, which make levels, are not used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from dialogs.llms.reads import configured, loaded_window, max_output_of
from dialogs.models import LLM, Dialog, LlmBounds
from dialogs.models.llm import Compaction, WindowSource
from dialogs.providers.registry import KINDS, Kind, WindowFrom
from health.compaction.config import PASSAGES_AND_LAST_FIVE, ContextConfig, LmStudio, chain_for
from health.compaction.terms.pressure import WARNING_SHARE
from health.compaction.terms.reasons import Reason, Why
from health.configured import config_for
from health.limits import LEAST_USABLE_TOKENS, Term, effective_limit, output_reserve
from health.monitor.levels import context_window, usable
from health.tokens.windows import Bounds, ceiling

# The chain for LM Studio, unless staff want no model asked: its pruning agent; if that fails passages and the last five
# messages; else these alone.
LMSTUDIO_CHAIN = ("prune_with_agent", PASSAGES_AND_LAST_FIVE, "keep_last_five")


@dataclass(frozen=True, kw_only=True)
class Guard:
    """`limit` are the tokens that count as 100 %; of these `reserve` are kept for the answer, and count as used.

    `window` is the whole of what the model has, prompt and answer; None where it is unknown and `limit` was learned
    or set. `answer` is the least that is left for an answer. Where `limit` is a guess, below a request that the server
    refused, what is more than `limit` but not than `tried` may be sent. `off`: nothing is compacted by itself;
    `cuts_silently`: the server reads only a part of what does not fit, without a word. `learned`: nobody wrote the
    limit down. `refused` says why no request can be made.
    """

    limit: int
    tried: int
    reserve: int
    answer: int
    window: int | None
    config: ContextConfig
    chain: tuple[str, ...]
    trace: tuple[Term, ...]
    off: bool = False
    cuts_silently: bool = False
    learned: Why | None = None
    refused: Reason | None = None

    @property
    def room(self) -> int:
        """The most tokens of a prompt."""
        return self.limit - self.reserve

    @property
    def threshold(self) -> int:
        """Above so many tokens, the reserve among them, a request is compacted first."""
        return int(self.config.warning_threshold * self.limit)

    @property
    def is_narrowed(self) -> bool:
        """Is less allowed than the window has room for, or is that unknown?"""
        return self.window is None or self.room < self.window - self.answer

    @property
    def begins_at(self) -> int:
        """The tokens of a prompt, without its answer, above which compaction begins."""
        return max(0, self.threshold - self.reserve)

    def told(self, limit: int) -> int | Reason:
        """The limit in words, for sentences."""
        return Reason(self.learned, {"tokens": limit}) if self.learned else limit

    def traced(self) -> list[dict[str, Any]]:
        return [term.as_json() for term in self.trace]


@dataclass(frozen=True, kw_only=True)
class KnownWindow:
    """What is known of a window: its tokens, their source, and the least answer that must fit.

    `bound` was learned; if it is a guess, `highest` is the largest request that was not refused.
    """

    window: int | None
    source: Reason
    answer: int
    bound: int | None
    highest: int | None
    input_length: int | None

    @property
    def room(self) -> int | None:
        """The most that a prompt may take. None where nothing is known."""
        return self._room(self.bound)

    @property
    def tried(self) -> int | None:
        """The room without the guessed bound of the window."""
        return self._room(self.highest)

    def _room(self, bound: int | None) -> int | None:
        rooms = (
            self.window - self.answer if self.window else None,
            bound - self.answer if bound else None,
            self.input_length if self.window else None,
        )
        return min((max(1, room) for room in rooms if room is not None), default=None)


def guard_of(dialog: Dialog, config: ContextConfig | None = None) -> Guard | None:
    """None: neither a window nor a limit is known, so nothing can be compacted by itself. Without `config`, the one
    in force."""
    config = config or config_of(dialog)
    if is_window_as_loaded(dialog.llm):
        guard = _lmstudio(dialog, config)
    else:
        known = known_window(dialog)
        guard = None if known.room is None and not has_limit(dialog) else _by_window(dialog, config, known)
    if guard is None:
        return None
    return replace(guard, off=is_off(dialog), cuts_silently=cuts_silently(dialog.llm))


def config_of(dialog: Dialog, base: ContextConfig | None = None) -> ContextConfig:
    """The settings in force for this dialog: everybody's (or `base`), then its LLM type's, then its agent's."""
    return config_for(dialog.agent.own_settings, llm_type=dialog.llm.limit_type, base=base)


def active_guard(dialog: Dialog, config: ContextConfig | None = None) -> Guard | None:
    """The guard, if it acts by itself: None also where compaction is off."""
    guard = guard_of(dialog, config)
    return None if guard is None or guard.off else guard


def has_limit(dialog: Dialog) -> bool:
    """Has an admin set a limit for the agent or the LLM?"""
    return dialog.agent.context_budget or bool(dialog.llm.limit_type)


@dataclass(frozen=True, kw_only=True)
class NarrowLimit:
    limit: int | None = None
    is_learned: bool = False


def limit_below_window(dialog: Dialog) -> NarrowLimit:
    """The limit that compaction goes by, where an admin has set it below the window's room, or refusals and cuts taught
    it. Costs little elsewhere."""
    guard = active_guard(dialog) if has_limit(dialog) or known_window(dialog).bound else None
    if guard is None or not guard.is_narrowed:
        return NarrowLimit()
    return NarrowLimit(limit=guard.limit, is_learned=guard.learned is not None)


def is_off(dialog: Dialog) -> bool:
    """Whether compaction is off: for the LLM, for the agent or for this dialog; one of the three is enough."""
    return Compaction.OFF in (dialog.llm.compaction, dialog.agent.compaction, dialog.compaction)


def may_be_guarded(dialog: Dialog) -> bool:
    """False where nothing is compacted automatically. Counts no tokens."""
    if is_off(dialog):
        return False
    return is_window_as_loaded(dialog.llm) or has_limit(dialog) or room_of(dialog) is not None


def is_window_as_loaded(llm: LLM) -> bool:
    """Is the LLM's window set each time the model is loaded, as in LM Studio?"""
    return kind_of(llm).window is WindowFrom.LOADED


def kind_of(llm: LLM) -> Kind:
    """The traits of every server of the LLM's kind of provider."""
    return KINDS[llm.provider.kind]


def cuts_silently(llm: LLM) -> bool:
    """Does its server read only a part of a prompt that does not fit, and answer as if it had read all?"""
    provider, bounds = llm.provider, bounds_of(llm)
    return KINDS[provider.kind].cuts_silently or provider.is_hidden_ollama or bounds.cut_at is not None


def bounds_of(llm: LLM) -> Bounds:
    try:
        return llm.bounds.known
    except LlmBounds.DoesNotExist:
        return Bounds()


def by_limit(dialog: Dialog, config: ContextConfig | None = None) -> Guard:
    """The limit as configured for this agent and LLM, whether or not a budget is switched on."""
    return _by_window(dialog, config or config_of(dialog), known_window(dialog), budget=True)


def known_window(dialog: Dialog) -> KnownWindow:
    llm = dialog.llm
    is_loaded = is_window_as_loaded(llm)
    window = loaded_window(llm) if is_loaded else context_window(configured(llm))
    learned, now = Bounds() if is_loaded else bounds_of(llm), timezone.now()
    bound, highest = (ceiling(learned, now, at_most=at_most) for at_most in (False, True))
    whole = min((size for size in (window, bound) if size), default=None)
    return KnownWindow(
        window=window,
        source=_source(llm),
        answer=output_reserve(whole, requested=max_output_of(dialog)) if whole else 0,
        bound=bound,
        highest=highest,
        input_length=usable(llm.input_length) if llm.context_length else None,
    )


def room_of(dialog: Dialog) -> int | None:
    """What is left of the window beside the least answer: no limit can be more. None where nothing is known."""
    return known_window(dialog).room


SOURCES = {
    WindowSource.SERVER: Why.FROM_SERVER,
    WindowSource.FILE: Why.FROM_CATALOGUE,
    WindowSource.ADMIN: Why.FROM_ADMIN,
    WindowSource.REFUSAL: Why.FROM_REFUSAL,
}


def _source(llm: LLM) -> Reason:
    """The source of the window, in words."""
    if is_window_as_loaded(llm):
        return Reason(Why.LOADED)
    if not llm.context_length:
        return Reason(Why.INPUT_LENGTH)
    source = llm.context_length_source
    return Reason(SOURCES[WindowSource(source)] if source else Why.WRITTEN_DOWN)


def _by_window(dialog: Dialog, config: ContextConfig, known: KnownWindow, *, budget: bool = False) -> Guard:
    """The room, narrowed by an admin's limit where one is set."""
    trace = _trace(known)
    if budget or has_limit(dialog):
        found = effective_limit(
            config,
            agent_limit=dialog.agent.context_limit if budget or dialog.agent.context_budget else None,
            llm_type=dialog.llm.limit_type,
            window=None if known.room is None else known.room + known.answer,
            reserve=known.answer,
            is_p1=dialog.agent.is_p1,
        )
        limit, trace, refused = found.tokens, found.trace, found.refused
    else:
        limit, refused = known.room or 0, None
    return Guard(
        limit=limit,
        tried=limit if limit < (known.room or 0) else max(limit, known.tried or 0),
        reserve=0,
        answer=known.answer,
        window=known.window,
        config=config,
        chain=chain_for(config),
        trace=trace,
        learned=_learned_as(known) if limit == known.room else None,
        refused=refused,
    )


def _learned_as(known: KnownWindow) -> Why | None:
    """The name of a room that was learned from what a server refused or cut."""
    if known.bound is not None and known.bound <= (known.window or known.bound):
        return Why.LIMIT_GUESSED if known.bound < (known.highest or 0) else Why.LIMIT_LEARNED
    return Why.LIMIT_LEARNED if known.window and known.source.why is Why.FROM_REFUSAL else None


def _trace(known: KnownWindow) -> tuple[Term, ...]:
    terms = []
    if known.window:
        terms.append(Term(what="window", tokens=known.window, why=known.source))
    if known.bound:
        terms.append(Term(what="bound", tokens=known.bound, why=Reason(Why.LEARNED_BOUND)))
    if known.room is not None:
        terms.append(Term(what="room", tokens=known.room, why=Reason(Why.KEPT_FOR_ANSWER, {"answer": known.answer})))
    return tuple(terms)


def _lmstudio(dialog: Dialog, config: ContextConfig) -> Guard | None:
    """The loaded window, with the answer's reserve counted as used; 80, 90 and 100 % of it cannot be changed.

    Without a window there is no guard: the provider refuses such a model before any request.
    """
    known = known_window(dialog)
    if known.window is None:
        return None
    limit, reserve, trace = known.window, known.answer, _trace(known)
    config = replace(config, warning_threshold=WARNING_SHARE, goal=0.7, accept=WARNING_SHARE)
    if has_limit(dialog):
        set_by_admin = _by_window(dialog, config, known)
        if set_by_admin.limit < limit - reserve:
            limit, reserve, trace = set_by_admin.limit, 0, set_by_admin.trace
    is_usable = known.window - known.answer >= LEAST_USABLE_TOKENS or has_limit(dialog)
    return Guard(
        limit=limit,
        tried=limit,
        reserve=reserve,
        answer=known.answer,
        window=known.window,
        config=config,
        chain=LMSTUDIO_CHAIN if config.lm_studio is LmStudio.PRUNING_AGENT else chain_for(config),
        trace=trace,
        refused=None if is_usable else _too_small(known.window, known.answer),
    )


def _too_small(window: int, reserve: int) -> Reason:
    return Reason(Why.TOO_SMALL, {"usable": window - reserve, "window": window, "least": LEAST_USABLE_TOKENS})
