"""Every write of the health app, and `compact_messages`, which writes nothing and needs no database.

Models are imported where they are written, so that compaction can be imported by any program.
"""

from __future__ import annotations

import gc
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from health.adapters import embeddings, minilm, summarizers
from health.compaction import compact
from health.compaction.config import ContextConfig, How, SelectPassages, chain_for
from health.compaction.laws.invariants import broken_request
from health.compaction.reading.messages import InvalidMessages, Orphans, Parsed, parse, render
from health.compaction.runner import run
from health.compaction.terms import configuration
from health.compaction.terms.configuration import InvalidConfig
from health.compaction.terms.outcome import Code, CompactionOutcome, Status, Step
from health.compaction.terms.ports import Answer, Embed, Embedded, Kit, Need, Summarise
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState
from health.monitor.levels import Configured, Usage, UsageUnavailable, read
from health.tokens.counters import counter_for
from health.tokens.images import media_tokens
from health.tokens.messages import overhead_tokens

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from health.models import HealthReading

logger = logging.getLogger(__name__)

# Used if the caller passes neither chain nor configuration: the limit is a budget to be used in full.
DEFAULT_CONFIG = ContextConfig(
    warning_threshold=1.0,
    goal=1.0,
    accept=1.0,
    min_gain=0.0,
    chain_order=(),
    select_passages=SelectPassages(fill=1.0),
)

NO_EMBEDDER = "none"

Embedder = Callable[[Embed], Embedded | None]


def compact_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    limit_tokens: int,
    task: str = "",
    model: str = "",
    chain: Sequence[str] | None = None,
    how: str | None = None,
    llm: summarizers.Llm | None = None,
    llm_timeout_seconds: float = summarizers.TIMEOUT_SECONDS,
    tools: Sequence[Mapping[str, Any]] = (),
    config: ContextConfig | None = None,
    embedder: Embedder | str = embeddings.DEFAULT,
    judge: bool = False,
    on_step: Callable[[Step], object] | None = None,
    orphans: Orphans = Orphans.REPAIR,
) -> CompactionOutcome:
    """Compact the messages to at most `limit_tokens` estimated tokens, or say why that is impossible.

    `task` says what is needed later; default: the user's last unanswered message. `model` names the vocabulary to count
    with, `tools` are the schemas sent along. `chain` names strategies, `config` sets their parameters and when to
    begin; with neither, passages are selected until the limit is full. `how` is "passages" (they come first) or "chain"
    (it comes first), and overrides the configuration; without it a `chain` runs alone. `llm` answers chat messages with
    text, for summaries; without it they are extractive. `embedder` is "minilm" (static vectors if that is absent or
    slow), "static", "none", or the caller's own. `judge` also measures coherence, which embeds all messages and takes
    longer than compacting them.

    The result is in `.messages` and shares no object with the input: a valid request once `sendable` has removed the
    marks by which the next compaction recognises texts of this one. Under the limit, and after a failure, they are the
    input's (with unpaired calls and results repaired); `.status` says which.

    Raises InvalidMessages and InvalidConfig, nothing else: after an internal error `.reason` says what went wrong.
    """
    names, config = _chosen(chain, config, how)
    embed = _embedder(embedder)
    state = ContextState(units=(), limit=_limit(limit_tokens), task=str(task), config=config)
    try:
        with no_collection():
            kit = Kit(counter=counter_for(model), may_summarise=llm is not None)
            media = partial(media_tokens, model=model)
            areas = config.priority_areas
            parsed = parse(messages, orphans=orphans, media_tokens=media, counter=kit.counter, priority_areas=areas)
            if not parsed.units:
                return _untouched(state, Status.SKIPPED, Reason(Why.NO_MESSAGES))
            state = replace(state, units=parsed.units, overhead_tokens=overhead_tokens(model, tools))
            answer = _answers(embed, llm, llm_timeout_seconds)
            steps = compact.compact(state, kit, chain=names, judge=judge)
            outcome = run(steps, answer=answer, on_step=partial(_report, on_step), clock=time.perf_counter)
            return _rendered(_fallen_back(outcome, embedder), parsed)
    except InvalidMessages:
        raise
    except Exception as error:
        logger.exception("compaction failed from within; the messages stay as they are")
        failed = Reason(Why.FAILED_WITHIN, {"name": f"{type(error).__name__}: {error}"})
        outcome = _untouched(state, Status.FAILED, failed)
        return replace(outcome, code=Code.BREAKER_FAILED, messages=_as_given(messages))


def _chosen(
    chain: Sequence[str] | None, config: ContextConfig | None, how: str | None
) -> tuple[tuple[str, ...], ContextConfig]:
    """The names of the chain, and the configuration."""
    if chain is not None and not _is_names(chain):
        raise InvalidConfig(f"chain must be a list of names of strategies, not {chain!r}.")
    if config is not None and not isinstance(config, ContextConfig):
        raise InvalidConfig(f"config must be a ContextConfig, not {type(config).__name__}.")
    if how is not None and how not in list(How):
        raise InvalidConfig(f"how must be {' or '.join(How)}, not {how!r}.")
    is_default = config is None and chain is None and how != How.CHAIN
    found = DEFAULT_CONFIG if is_default else _checked(config or ContextConfig())
    if how is None:
        return chain_for(found) if chain is None else tuple(chain), found
    order = found.chain_order if chain is None else tuple(chain)
    return chain_for(replace(found, how=How(how), chain_order=order)), found


def _is_names(chain: Any) -> bool:
    return isinstance(chain, list | tuple) and all(isinstance(name, str) for name in chain)


@lru_cache(maxsize=64)
def _checked(config: ContextConfig) -> ContextConfig:
    """The configuration, if its values are valid. One made in code may have invalid ones, as NaN, or a share of 7."""
    return config if config == DEFAULT_CONFIG else configuration.load(configuration.dump(config))


def _limit(limit_tokens: Any) -> int:
    if isinstance(limit_tokens, bool) or not isinstance(limit_tokens, int | float):
        raise InvalidConfig(f"limit_tokens must be a number, not {limit_tokens!r}.")
    if not math.isfinite(limit_tokens) or limit_tokens < 1:
        raise InvalidConfig(f"limit_tokens must be at least 1, not {limit_tokens!r}.")
    return int(limit_tokens)


def _embedder(embedder: Embedder | str) -> Embedder:
    if embedder == NO_EMBEDDER:
        return lambda need: None
    if not isinstance(embedder, str):
        return embedder
    try:
        return embeddings.embedder(embedder)
    except embeddings.UnsupportedEmbedder as error:
        raise InvalidConfig(str(error)) from error


def _answers(embed: Embedder, llm: summarizers.Llm | None, timeout_seconds: float) -> Callable[[Need], Answer]:
    """The answerers of the chain's needs. There is no pruning agent, as that needs a dialog.

    An LLM that fails once is not asked again, so that its timeout is not waited for twice.
    """
    summarise = summarizers.from_callable(llm, timeout_seconds=timeout_seconds) if llm else None

    def answer(need: Need) -> Answer:
        nonlocal summarise
        if isinstance(need, Embed):
            return embed(need)
        if summarise is None or not isinstance(need, Summarise):
            return None
        summary = summarise(need)
        summarise = summarise if summary else None
        return summary

    return answer


def _report(on_step: Callable[[Step], object] | None, step: Step) -> None:
    """A broken progress bar must not break a compaction."""
    if on_step:
        with suppress(Exception):
            on_step(step)


def _fallen_back(outcome: CompactionOutcome, asked: Embedder | str) -> CompactionOutcome:
    """A note that a task was matched without the requested embedder."""
    others = [name for name in outcome.embedder.split(", ") if name not in ("", minilm.NAME)]
    if asked != embeddings.DEFAULT or not (outcome.state.task and others):
        return outcome
    return replace(outcome, warnings=(*outcome.warnings, Reason(Why.WITHOUT_MINILM, {"name": ", ".join(others)})))


def _rendered(outcome: CompactionOutcome, parsed: Parsed) -> CompactionOutcome:
    """The outcome with its messages, repairs noted first. A result that no provider accepts is our error."""
    messages = render(outcome.state.units, parsed.originals)
    faults = broken_request(messages)
    if faults:
        raise RuntimeError(f"a provider would refuse the result: {faults[0]}")
    return replace(outcome, messages=messages, warnings=(*parsed.warnings, *outcome.warnings))


def _as_given(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The input, repaired and copied as far as possible."""
    try:
        parsed = parse(messages)
        return render(parsed.units, parsed.originals)
    except Exception:
        return [dict(message) for message in messages]


def _untouched(state: ContextState, status: Status, why: Reason) -> CompactionOutcome:
    tokens = state.estimated_tokens
    return CompactionOutcome(
        status=status, state=state, estimated_tokens_before=tokens, estimated_tokens_after=tokens, why=why
    )


# --- Python's cyclic garbage collection, suspended for one compaction ---
@contextmanager
def no_collection() -> Iterator[None]:
    """Suspend the cyclic garbage collector; objects without references are freed all the same.

    This affects the whole process. A nested use leaves it to the outer one to resume it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# What a row keeps of the thresholds that its reading was judged by.
CEILINGS = ("optimal_max_tokens", "optimal_configured", "critical_max_tokens", "critical_configured")

__all__ = ["compact_messages", "record_reading", "record_reward_export"]


def record_reading(
    *, generation_id: int, usage: Usage | UsageUnavailable, configured: Configured, window_source: str
) -> HealthReading:
    """Judge one generation by its reported usage and store the reading; without usage it has no numbers."""
    from dominds.rows import insert, new
    from health.models import HealthReading

    reading = read(usage, configured)
    row = new(
        HealthReading,
        generation_id=generation_id,
        level=reading.level,
        reason=reading.reason,
        prompt_tokens=reading.prompt_tokens,
        context_window=reading.context_window,
        window_source=window_source if reading.context_window else "",
        hard_util=reading.hard_util,
        optimal_util=reading.optimal_util,
        **({name: getattr(reading.thresholds, name) for name in CEILINGS} if reading.thresholds else {}),
    )
    insert(row)
    return row


def record_reward_export(*, lines: int, by: User | None) -> None:
    """Record in the settings' audit trail who exported the log of rewards."""
    from health.models import SettingsChange

    SettingsChange.objects.create(changed_by=by, key="reward_log.export", after=str(lines))
