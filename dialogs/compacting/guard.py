"""Who is guarded, and with which limit: LM Studio always, anybody else only where an admin has set a limit.

A limit counts tokens that are estimated. What levels are made of, measured tokens, plays no part here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dialogs.models import Dialog
from dialogs.models.llm import ProviderKind
from dialogs.selectors.providers import configured, loaded_window, max_output_of
from health.compaction.config import ContextConfig
from health.compaction.pressure import WARNING_SHARE
from health.compaction.reasons import Reason, Why
from health.configured import context_config
from health.limits import LEAST_USABLE_TOKENS, EffectiveLimit, Term, effective_limit, output_reserve
from health.monitor.levels import context_window

# Seed 2: the pruning agent, and where that fails, whole rounds from the end.
LMSTUDIO_CHAIN = ("prune_with_agent", "keep_last_five")
PAYLOADS_FIRST = "trim_payloads"
# Where the configured chain stops between goal and threshold, the next message would compact again: this one goes on.
TO_THE_GOAL = "select_passages"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """`limit` are the tokens that count as 100 %; of these `reserve` are kept for the answer, and count as used.

    `refused` says why no request can be made at all; None where one can.
    """

    limit: int
    reserve: int
    config: ContextConfig
    chain: tuple[str, ...]
    trace: tuple[Term, ...]
    refused: Reason | None = None

    @property
    def room(self) -> int:
        """What a prompt may fill."""
        return self.limit - self.reserve

    def traced(self) -> list[dict[str, Any]]:
        return [term.as_json() for term in self.trace]


def guard_of(dialog: Dialog, config: ContextConfig | None = None) -> Guard | None:
    """None: nothing is compacted by itself, and requests stay as they are. Without `config`, the one in force."""
    has_budget = has_limit(dialog)
    if dialog.llm.provider.kind == ProviderKind.LMSTUDIO:
        return _lmstudio(dialog, config or context_config(), has_budget=has_budget)
    return by_limit(dialog, config) if has_budget else None


def has_limit(dialog: Dialog) -> bool:
    """An admin has set one, for the agent or for the LLM."""
    return dialog.agent.context_budget or bool(dialog.llm.limit_type)


def may_be_guarded(dialog: Dialog) -> bool:
    """False costs nothing to know, and then there is no guard."""
    return dialog.llm.provider.kind == ProviderKind.LMSTUDIO or has_limit(dialog)


def by_limit(dialog: Dialog, config: ContextConfig | None = None) -> Guard:
    """The limit as configured for this agent and LLM; also that of a compaction by hand where nobody is guarded."""
    config = config or context_config()
    found = _effective(dialog, config)
    chain = tuple(dict.fromkeys((PAYLOADS_FIRST, *config.chain_order, TO_THE_GOAL)))
    return Guard(limit=found.tokens, reserve=0, config=config, chain=chain, trace=found.trace, refused=found.refused)


def _lmstudio(dialog: Dialog, config: ContextConfig, *, has_budget: bool) -> Guard | None:
    """The loaded window, with the answer's reserve counted as used; 80, 90 and 100 % of it cannot be changed.

    Without a window there is no guard: the provider refuses such a model before any request.
    """
    window = loaded_window(dialog.llm)
    if window is None:
        return None
    reserve = output_reserve(window, requested=max_output_of(dialog))
    config = replace(config, warning_threshold=WARNING_SHARE, goal=0.7, accept=WARNING_SHARE)
    trace: tuple[Term, ...] = (Term(what="window", tokens=window, why=Reason(Why.LOADED)),)
    if has_budget:
        found = _effective(dialog, config)
        if found.tokens < window - reserve:
            window, reserve, trace = found.tokens, 0, found.trace
    refused = None if window - reserve >= LEAST_USABLE_TOKENS or has_budget else _too_small(window, reserve)
    return Guard(limit=window, reserve=reserve, config=config, chain=LMSTUDIO_CHAIN, trace=trace, refused=refused)


def room_of(dialog: Dialog) -> int | None:
    """The window less what is kept for the answer: no limit can be more. None where the window is unknown."""
    window, reserve = _window(dialog)
    return window - reserve if window else None


def _window(dialog: Dialog) -> tuple[int | None, int]:
    is_lmstudio = dialog.llm.provider.kind == ProviderKind.LMSTUDIO
    window = loaded_window(dialog.llm) if is_lmstudio else context_window(configured(dialog.llm))
    return window, output_reserve(window, requested=max_output_of(dialog)) if window else 0


def _effective(dialog: Dialog, config: ContextConfig) -> EffectiveLimit:
    window, reserve = _window(dialog)
    return effective_limit(
        config,
        agent_limit=dialog.agent.context_limit if dialog.agent.context_budget else None,
        llm_type=dialog.llm.limit_type,
        window=window,
        reserve=reserve,
        is_p1=dialog.agent.is_p1,
    )


def _too_small(window: int, reserve: int) -> Reason:
    return Reason(Why.TOO_SMALL, {"usable": window - reserve, "window": window, "least": LEAST_USABLE_TOKENS})
