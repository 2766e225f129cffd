"""How many tokens a context may have: the effective limit of (agent, LLM), with a trace of where it came from.

Values in, values out: nothing here knows dialogs, tables or providers. Order of the terms: the agent's own limit,
else the LLM's, else the default; P1 raises it, the floor raises it, the window caps it (X5, DC21, DC22).
"""

from __future__ import annotations

from dataclasses import dataclass

from health.compaction.config import ContextConfig

P1_FACTOR_PERCENT = 120
LEAST_USABLE_TOKENS = 1024
# The least answer that must have room: a tenth of the window or what was asked for, but never less than 64 tokens.
LEAST_RESERVE_TOKENS = 64


@dataclass(frozen=True, kw_only=True)
class Term:
    """One line of the trace: the limit in tokens after `what` was looked at."""

    what: str
    tokens: int
    source: str


@dataclass(frozen=True, kw_only=True)
class EffectiveLimit:
    """`refused` says why a dialog cannot start with this limit; empty where it can."""

    tokens: int
    trace: tuple[Term, ...]
    refused: str = ""


def output_reserve(window: int, *, requested: int | None = None) -> int:
    """Tokens kept free for the answer: what was asked for, a tenth of the window at most, and at least 64.

    Who asks for a longer answer gets what is left of the window, and this at least: history does not give way to it.
    """
    tenth = window // 10
    wanted = tenth if requested is None else min(requested, tenth)
    return min(max(wanted, LEAST_RESERVE_TOKENS), window // 5)


def effective_limit(
    config: ContextConfig,
    *,
    agent_limit: int | None = None,
    llm_type: str = "",
    window: int | None = None,
    reserve: int = 0,
    is_p1: bool = False,
) -> EffectiveLimit:
    """min(window − reserve, max(floor, chosen × 1.2 for a P1 agent)). `window` None: it caps nothing.

    >>> effective_limit(ContextConfig(), agent_limit=2000).tokens
    3500
    """
    trace = [_chosen(config, agent_limit, llm_type)]
    if is_p1:
        trace.append(Term(what="P1 agent", tokens=trace[-1].tokens * P1_FACTOR_PERCENT // 100, source="20 % more"))
    if trace[-1].tokens < config.min_limit:
        trace.append(Term(what="floor", tokens=config.min_limit, source="the least that is allowed (min_limit)"))
    if window is not None and trace[-1].tokens > window - reserve:
        source = f"the window of {window:,} less {reserve:,} for the answer"
        trace.append(Term(what="window", tokens=max(0, window - reserve), source=source))
    tokens = trace[-1].tokens
    return EffectiveLimit(tokens=tokens, trace=tuple(trace), refused=_refused(tokens))


def _chosen(config: ContextConfig, agent_limit: int | None, llm_type: str) -> Term:
    if agent_limit is not None:
        return Term(what="agent", tokens=agent_limit, source="set for this agent")
    llm = next((llm for llm in config.per_llm if llm.type == llm_type), None)
    if llm is not None and not llm.follow_default:
        return Term(what="LLM", tokens=llm.limit, source=llm.type)
    source = "default_limit in the settings" if llm is None else f"default_limit, which {llm.type} follows"
    return Term(what="default", tokens=config.default_limit, source=source)


def _refused(tokens: int) -> str:
    if tokens >= LEAST_USABLE_TOKENS:
        return ""
    return (
        f"Only {tokens:,} tokens are usable, fewer than {LEAST_USABLE_TOKENS:,}: load the model with a larger context."
    )
