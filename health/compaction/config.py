"""The configuration of a compaction, every key, with its defaults. Frozen; `ContextConfig()` is the YAML as shipped.

`configuration.load` reads and checks YAML; here only the values live. Shares are fractions of 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


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

    old_threshold: float = 0.6
    summary_length: int = 300
    min_coherence: float = 0.7


@dataclass(frozen=True, kw_only=True)
class PrioritizeRecent:
    rel_threshold: float = 0.5
    recent_bias: float = 0.2
    priority_boost: float = 1.5


@dataclass(frozen=True, kw_only=True)
class CompressRatios:
    """What is left of each kind, at most. P1 is never shortened."""

    code: float = 0.7
    text: float = 0.5
    plan_ref: float = 1.0
    log: float = 0.4
    other: float = 0.6


@dataclass(frozen=True, kw_only=True)
class ContentTypeChunking:
    compress_ratios: CompressRatios = field(default_factory=CompressRatios)


@dataclass(frozen=True, kw_only=True)
class DiscardLowRel:
    discard_percent: float = 0.3
    placeholder_detail: PlaceholderDetail = PlaceholderDetail.BRIEF
    min_coherence: float = 0.6


@dataclass(frozen=True, kw_only=True)
class Hybrid:
    max_iterations: int = 3


@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """At most `max_messages`, of which the newest `recent_share` always stay."""

    max_messages: int = 24
    recent_share: float = 0.4


@dataclass(frozen=True, kw_only=True)
class PayloadLimits:
    """How a history is kept short; the largest number of messages is `SlidingWindow.max_messages`.

    The numbers after `max_actions` are ours, for payloads of other tools; `bulky_tokens` is where those begin.
    """

    max_text_chars: int = 1000
    max_data_chars: int = 2000
    max_ui_nodes: int = 200
    max_ui_depth: int = 2
    max_ui_children: int = 20
    max_web_elements: int = 200
    max_actions: int = 8
    array_head: int = 6
    array_tail: int = 2
    map_keys: int = 40
    log_edge_lines: int = 5
    diff_context_lines: int = 1
    bulky_tokens: int = 200


@dataclass(frozen=True, kw_only=True)
class SelectPassages:
    """Passages fill the context up to `fill` of the limit."""

    fill: float = 0.7


@dataclass(frozen=True, kw_only=True)
class LlmLimit:
    """`limit` counts only where `follow_default` is off. `own` is the type's own settings, as JSON; empty: none."""

    type: str
    limit: int
    follow_default: bool
    own: str = ""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    max_attempts: int = 3
    backoff_base_seconds: float = 5
    max_delay_seconds: float = 60


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

    min_limit: int = 3500
    default_limit: int = 5000
    warning_threshold: float = 0.8
    goal: float = 0.7
    accept: float = 0.8
    min_gain: float = 0.1
    ledger_share: float = 0.1
    how: How = How.PASSAGES
    lm_studio: LmStudio = LmStudio.PRUNING_AGENT
    summaries: Summaries = Summaries.EXTRACTIVE
    prepare: Prepare = Prepare.FREE
    prepare_from: float = 0.95
    priority_areas: tuple[str, ...] = ()
    per_llm: tuple[LlmLimit, ...] = PER_LLM
    chain_order: tuple[str, ...] = CHAIN_ORDER
    summarize_old: SummarizeOld = field(default_factory=SummarizeOld)
    prioritize_recent: PrioritizeRecent = field(default_factory=PrioritizeRecent)
    content_type_chunking: ContentTypeChunking = field(default_factory=ContentTypeChunking)
    discard_low_rel: DiscardLowRel = field(default_factory=DiscardLowRel)
    hybrid: Hybrid = field(default_factory=Hybrid)
    sliding_window: SlidingWindow = field(default_factory=SlidingWindow)
    payloads: PayloadLimits = field(default_factory=PayloadLimits)
    select_passages: SelectPassages = field(default_factory=SelectPassages)
    recovery_mode: RecoveryMode = RecoveryMode.FRESH_START
    handover_tokens: int = 500
    at_milestone: AtMilestone = AtMilestone.OFFER
    on_over_hits: AtMilestone = AtMilestone.OFFER
    reward_log: RewardLog = RewardLog.OFF
    reward_log_days: int = 30
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
