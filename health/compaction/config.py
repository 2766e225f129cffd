"""The configuration of a compaction, every key, with its default and what it may be. Frozen; `ContextConfig()` is the
YAML as shipped.

`configuration.load` reads YAML and checks each value by its field's type: of words a `StrEnum`, else what the type is
annotated with. Shares are fractions of 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from health.compaction.terms.config_checks import flag, name, number, share, whole

# The floor can be raised, never lowered.
MIN_LIMIT = 3500
Share = Annotated[float, share]
Count = Annotated[int, whole(1)]
Seconds = Annotated[float, number(0)]
Flag = Annotated[bool, flag]
Name = Annotated[str, name]


class How(StrEnum):
    """Which engine runs first: the choice of passages, with the chain behind it, or the chain as it is configured."""

    PASSAGES = "passages"
    CHAIN = "chain"


class LmStudio(StrEnum):
    """What LM Studio's models are compacted by: the pruning agent, or as all others are, without a model."""

    PRUNING_AGENT = "pruning_agent"
    NO_MODEL = "no_model"


class Summaries(StrEnum):
    """Who writes the summaries of `summarize_old`: nobody, they are made of sentences that were said; or the model of
    the pruning agent, whose words are checked."""

    EXTRACTIVE = "extractive"
    MODEL = "model"


class Prepare(StrEnum):
    """When the pruning agent is asked before its decision is needed: where it keeps nobody waiting and costs nothing,
    also where it costs money or shares a server, or never."""

    FREE = "free"
    ALWAYS = "always"
    NEVER = "never"


class RecoveryMode(StrEnum):
    FRESH_START = "fresh_start"
    TRUNCATE = "truncate"
    ERROR = "error"


class AtMilestone(StrEnum):
    """Whether a fresh start follows: when the task of a P1 message is done, after over-hits."""

    NEVER = "never"
    OFFER = "offer"
    AUTOMATIC = "automatic"


class RewardLog(StrEnum):
    """Whether each run is written to the log of rewards; nobody is asked to give that away."""

    OFF = "off"
    ON = "on"


class PlaceholderDetail(StrEnum):
    BRIEF = "brief"
    LINKED = "linked"


@dataclass(frozen=True, kw_only=True)
class SummarizeOld:
    """The first `old_threshold` of the units become one summary of at most `summary_length` tokens."""

    old_threshold: Share = 0.6
    summary_length: Count = 300
    min_coherence: Share = 0.7


@dataclass(frozen=True, kw_only=True)
class PrioritizeRecent:
    rel_threshold: Share = 0.5
    recent_bias: Share = 0.2
    priority_boost: Annotated[float, number(1)] = 1.5


@dataclass(frozen=True, kw_only=True)
class CompressRatios:
    """What is left of each kind, at most. P1 is never shortened."""

    code: Share = 0.7
    text: Share = 0.5
    plan_ref: Share = 1.0
    log: Share = 0.4
    other: Share = 0.6


@dataclass(frozen=True, kw_only=True)
class ContentTypeChunking:
    compress_ratios: CompressRatios = field(default_factory=CompressRatios)


@dataclass(frozen=True, kw_only=True)
class DiscardLowRel:
    discard_percent: Share = 0.3
    placeholder_detail: PlaceholderDetail = PlaceholderDetail.BRIEF
    min_coherence: Share = 0.6


@dataclass(frozen=True, kw_only=True)
class Hybrid:
    max_iterations: Count = 3


@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """At most `max_messages`, of which the newest `recent_share` always stay."""

    max_messages: Count = 24
    recent_share: Share = 0.4


@dataclass(frozen=True, kw_only=True)
class PayloadLimits:
    """How a history is kept short; the largest number of messages is `SlidingWindow.max_messages`.

    The numbers after `max_actions` are ours, for payloads of other tools; `bulky_tokens` is where those begin.
    """

    max_text_chars: Count = 1000
    max_data_chars: Count = 2000
    max_ui_nodes: Count = 200
    max_ui_depth: Count = 2
    max_ui_children: Count = 20
    max_web_elements: Count = 200
    max_actions: Count = 8
    array_head: Count = 6
    array_tail: Count = 2
    map_keys: Count = 40
    log_edge_lines: Count = 5
    diff_context_lines: Count = 1
    bulky_tokens: Count = 200


@dataclass(frozen=True, kw_only=True)
class SelectPassages:
    """Passages fill the context up to `fill` of the limit."""

    fill: Share = 0.7


@dataclass(frozen=True, kw_only=True)
class LlmLimit:
    """`limit` counts only where `follow_default` is off. `own` is the type's own settings, as JSON; empty: none."""

    type: Name
    limit: Count
    follow_default: Flag
    own: str = ""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    max_attempts: Count = 3
    backoff_base_seconds: Seconds = 5
    max_delay_seconds: Seconds = 60


PER_LLM = (
    LlmLimit(type="local_14b", limit=3500, follow_default=True),
    LlmLimit(type="cloud_grok", limit=8000, follow_default=False),
    LlmLimit(type="gpt4", limit=6000, follow_default=True),
)
CHAIN_ORDER = ("summarize_old", "prioritize_recent", "content_type_chunking", "discard_low_rel", "hybrid")
# Before and behind the configured chain, wherever it stands.
TRIM, PASSAGES = "trim_payloads", "select_passages"
# Passages too, with the last five messages whole: what follows a pruning agent that fails.
PASSAGES_AND_LAST_FIVE = "passages_keep_last_five"


@dataclass(frozen=True, kw_only=True)
class ContextConfig:
    """A compaction begins above `warning_threshold` of the limit, aims at `goal`, and is content with `accept`.

    From `prepare_from` of the threshold on, the pruning agent may be asked beforehand.
    A run that frees less than `min_gain` is not applied. `ledger_share` bounds what is carried word for word.
    `chain_for` says which strategies run. A message that a person puts in one of `priority_areas` is of priority 1.
    """

    min_limit: Annotated[int, whole(MIN_LIMIT)] = MIN_LIMIT
    default_limit: Count = 5000
    warning_threshold: Share = 0.8
    goal: Share = 0.7
    accept: Share = 0.8
    min_gain: Share = 0.1
    ledger_share: Share = 0.1
    how: How = How.PASSAGES
    lm_studio: LmStudio = LmStudio.PRUNING_AGENT
    summaries: Summaries = Summaries.EXTRACTIVE
    prepare: Prepare = Prepare.FREE
    prepare_from: Share = 0.95
    priority_areas: tuple[Name, ...] = ()
    per_llm: tuple[LlmLimit, ...] = PER_LLM
    chain_order: tuple[Name, ...] = CHAIN_ORDER
    summarize_old: SummarizeOld = field(default_factory=SummarizeOld)
    prioritize_recent: PrioritizeRecent = field(default_factory=PrioritizeRecent)
    content_type_chunking: ContentTypeChunking = field(default_factory=ContentTypeChunking)
    discard_low_rel: DiscardLowRel = field(default_factory=DiscardLowRel)
    hybrid: Hybrid = field(default_factory=Hybrid)
    sliding_window: SlidingWindow = field(default_factory=SlidingWindow)
    payloads: PayloadLimits = field(default_factory=PayloadLimits)
    select_passages: SelectPassages = field(default_factory=SelectPassages)
    recovery_mode: RecoveryMode = RecoveryMode.FRESH_START
    handover_tokens: Count = 500
    at_milestone: AtMilestone = AtMilestone.OFFER
    on_over_hits: AtMilestone = AtMilestone.OFFER
    reward_log: RewardLog = RewardLog.OFF
    reward_log_days: Count = 30
    retry_default: RetryPolicy = field(default_factory=RetryPolicy)
    retry_per_tool: tuple[tuple[str, RetryPolicy], ...] = (
        ("askQuestion", RetryPolicy(max_attempts=4, backoff_base_seconds=10)),
    )

    def retries_of(self, *names: str) -> RetryPolicy:
        """A tool's own, by the first of its names that has one; else the default."""
        own = dict(self.retry_per_tool)
        return next((own[name] for name in names if name in own), self.retry_default)


def chain_for(config: ContextConfig) -> tuple[str, ...]:
    """The names of the strategies that run under a configuration, in order, none twice.

    Bulky payloads are trimmed first in any case. Passages come before the configured chain, which then only has what
    they leave above the accepted share; or behind it, so that it is never where a run ends above the goal.
    """
    order = (PASSAGES, *config.chain_order) if config.how is How.PASSAGES else (*config.chain_order, PASSAGES)
    return tuple(dict.fromkeys((TRIM, *order)))
