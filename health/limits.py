"""The effective limit of (agent, LLM): how many tokens a context may have, with a trace of how it was computed.

Values in, values out: nothing here knows dialogs, tables or providers. The agent's own limit, else the LLM's, else the
default; then P1 raises it, the floor raises it, the window caps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from health.compaction.config import ContextConfig
from health.compaction.terms.reasons import Reason, Why

P1_FACTOR_PERCENT = 120
LEAST_USABLE_TOKENS = 1024
# The minimal answer that must have room: a tenth of the window or the requested maximum, but at least 64 tokens.
LEAST_RESERVE_TOKENS = 64


@dataclass(frozen=True, kw_only=True)
class Term:
    """One line of the trace: the limit in tokens after `what` was applied."""

    what: str
    tokens: int
    why: Reason

    @property
    def source(self) -> str:
        """`why` in English."""
        return str(self.why)

    def as_json(self) -> dict[str, Any]:
        """The term as runs store it: the sentence for readers, the reason to translate."""
        return {"what": self.what, "tokens": self.tokens, "source": self.source, "why": self.why.as_json()}


@dataclass(frozen=True, kw_only=True)
class EffectiveLimit:
    """`refused` says why a dialog cannot start with this limit; None if it can."""

    tokens: int
    trace: tuple[Term, ...]
    refused: Reason | None = None


def output_reserve(window: int, *, requested: int | None = None) -> int:
    """Tokens kept free for the answer: the requested maximum, but at most a tenth of the window, and at least 64.

    A longer answer gets what is left of the window, at least this: history is not compacted for it.
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
    """min(window − reserve, max(floor, chosen × 1.2 for a P1 agent)). If `window` is None it caps nothing.

    >>> effective_limit(ContextConfig(), agent_limit=2000).tokens
    3500
    """
    trace = [_chosen(config, agent_limit, llm_type)]
    if is_p1:
        trace.append(
            Term(what="P1 agent", tokens=trace[-1].tokens * P1_FACTOR_PERCENT // 100, why=Reason(Why.P1_AGENT))
        )
    if trace[-1].tokens < config.min_limit:
        trace.append(Term(what="floor", tokens=config.min_limit, why=Reason(Why.LEAST_LIMIT)))
    if window is not None and trace[-1].tokens > window - reserve:
        why = Reason(Why.WINDOW_LESS_ANSWER, {"window": window, "reserve": reserve})
        trace.append(Term(what="window", tokens=max(0, window - reserve), why=why))
    tokens = trace[-1].tokens
    return EffectiveLimit(tokens=tokens, trace=tuple(trace), refused=_refused(tokens))


def _chosen(config: ContextConfig, agent_limit: int | None, llm_type: str) -> Term:
    if agent_limit is not None:
        return Term(what="agent", tokens=agent_limit, why=Reason(Why.AGENTS_LIMIT))
    llm = next((llm for llm in config.per_llm if llm.type == llm_type), None)
    if llm is not None and not llm.follow_default:
        return Term(what="LLM", tokens=llm.limit, why=Reason(Why.TYPES_LIMIT, {"name": llm.type}))
    why = Reason(Why.DEFAULT_LIMIT) if llm is None else Reason(Why.FOLLOWED_LIMIT, {"name": llm.type})
    return Term(what="default", tokens=config.default_limit, why=why)


def _refused(tokens: int) -> Reason | None:
    if tokens >= LEAST_USABLE_TOKENS:
        return None
    return Reason(Why.LIMIT_TOO_SMALL, {"usable": tokens, "least": LEAST_USABLE_TOKENS})
