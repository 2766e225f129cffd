"""The fields of the settings page that hold one value: each is named as its key's path in the YAML.

Lists (LLM types, the chain, tools' retries) are rows of their own, in `sheet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from health.compaction.config import (
    AtMilestone,
    ContextConfig,
    How,
    LmStudio,
    PayloadLimits,
    PlaceholderDetail,
    Prepare,
    RecoveryMode,
    RewardLog,
    Summaries,
)

BREAKING = "breaking_strategy"
RETRY_DEFAULT = "retry_policies.default"


@dataclass(frozen=True, kw_only=True)
class Field:
    """`path` is without the root. A field with `choices` is a select; one without is typed. `presets` are numbers that
    are offered for it, each with what it is for; of a list the names stand with commas between."""

    path: str
    label: Promise
    hint: Promise | str = ""
    choices: type[StrEnum] | None = None
    presets: tuple[tuple[int, Promise], ...] = ()
    is_list: bool = False

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def is_filled(self) -> bool:
        """Whether the value in force stands in the field even where it is the default; else it is its placeholder."""
        return not self.path.startswith((BREAKING, "payloads"))


@dataclass(frozen=True, kw_only=True)
class Group:
    """Fields that stand together: `name` is the strategy they belong to, or a name of ours."""

    name: str
    fields: tuple[Field, ...]


def of_strategy(name: str, *found: tuple[Any, ...], choices: type[StrEnum] | None = None) -> Group:
    """Keys with their labels, and a hint where one is needed. `choices` are those of the keys that end in `detail`."""
    made = (
        Field(
            path=f"{BREAKING}.{name}.{key}",
            label=label,
            hint=hint[0] if hint else "",
            choices=choices if key.endswith("detail") else None,
        )
        for key, label, *hint in found
    )
    return Group(name=name.partition(".")[0], fields=tuple(made))


LIMITS = Group(
    name="limits",
    fields=(
        Field(path="min_limit", label=_("Min limit (tokens)"), hint=_("The floor: never below 3,500.")),
        Field(
            path="default_limit",
            label=_("Default limit (tokens)"),
            hint=_("For agents and LLM types without a limit of their own."),
        ),
        Field(
            path="warning_threshold",
            label=_("Warning threshold"),
            hint=_("A share of the limit, at most 0.9: above it, compaction begins before anything is sent."),
        ),
    ),
)
AIMS = Group(
    name="aims",
    fields=(
        Field(path="goal", label=_("Goal"), hint=_("A run stops at this share of the limit.")),
        Field(path="accept", label=_("Good enough"), hint=_("A run that reaches no more than this share is content.")),
        Field(path="min_gain", label=_("Least gain"), hint=_("A run that frees a smaller share is not applied.")),
        Field(
            path="ledger_share",
            label=_("Ledger"),
            hint=_("The share of the limit for what the user stated, word for word."),
        ),
        Field(
            path="priority_areas",
            label=_("Areas of first priority"),
            hint=_("Names with commas between. A message that is given one of these areas gets P1."),
            is_list=True,
        ),
    ),
)
HOW = Group(
    name="how",
    fields=(
        Field(
            path="how",
            label=_("What runs first"),
            hint=_(
                "Passages keep the sentences, records and lines that will be needed, word for word, chosen from all "
                "that was said; the chain runs only where that does not suffice. The chain runs the strategies below "
                "in their order."
            ),
            choices=How,
        ),
    ),
)
LM_STUDIO = Group(
    name="lm_studio",
    fields=(
        Field(
            path="lm_studio",
            label=_("With LM Studio"),
            hint=_(
                "Without a model, LM Studio's dialogs are compacted as all others are: passages or the chain, in a "
                "second or less."
            ),
            choices=LmStudio,
        ),
        Field(
            path="summaries",
            label=_("Summaries"),
            hint=_(
                "Of sentences that were said, at once; or by the pruning agent’s model. What it writes is checked, and "
                "made of sentences where it invents, refuses or is late."
            ),
            choices=Summaries,
        ),
        Field(
            path="prepare",
            label=_("Ask the pruning agent beforehand"),
            hint=_(
                "While there is still room, so that nobody waits for it when the context is full. Without charge: on a "
                "server of its own, or with two requests at once, here or in a private network, and without a price."
            ),
            choices=Prepare,
        ),
        Field(
            path="prepare_from",
            label=_("Asked beforehand from"),
            hint=_("A share of the threshold at which compaction begins."),
        ),
    ),
)
RECOVERY = Group(
    name="recovery",
    fields=(
        Field(path="recovery_mode", label=_("Recovery mode"), choices=RecoveryMode),
        Field(path="handover_tokens", label=_("Handover (tokens)"), hint=_("What a fresh start begins with.")),
        Field(
            path="at_milestone",
            label=_("Fresh start at a milestone"),
            hint=_("When the task of a P1 message is done."),
            choices=AtMilestone,
        ),
        Field(
            path="on_over_hits",
            label=_("Fresh start after over-hits"),
            hint=_("When an agent’s context was over its limit three times in an hour; a P1 agent’s once."),
            choices=AtMilestone,
        ),
    ),
)
LEARNING = Group(
    name="learning",
    fields=(
        Field(
            path="reward_log",
            label=_("Log of rewards"),
            hint=_("One line for each compaction, in the data folder: numbers and names, never what was said."),
            choices=RewardLog,
        ),
        Field(path="reward_log_days", label=_("Days that it keeps a line")),
    ),
)
RETRIES = Group(
    name="retries",
    fields=(
        Field(path=f"{RETRY_DEFAULT}.max_attempts", label=_("Most tries")),
        Field(path=f"{RETRY_DEFAULT}.backoff_base_seconds", label=_("First wait (seconds)")),
        Field(path=f"{RETRY_DEFAULT}.max_delay_seconds", label=_("Longest wait (seconds)")),
    ),
)
PAYLOAD_LABELS = {
    "max_text_chars": _("Characters of a text"),
    "max_data_chars": _("Characters of data"),
    "max_ui_nodes": _("Nodes of an interface"),
    "max_ui_depth": _("Levels of an interface"),
    "max_ui_children": _("Children of a node"),
    "max_web_elements": _("Elements of a web page"),
    "max_actions": _("Actions"),
    "array_head": _("First elements of a list"),
    "array_tail": _("Last elements of a list"),
    "map_keys": _("Keys of a mapping"),
    "log_edge_lines": _("Lines at each end of a log"),
    "diff_context_lines": _("Lines around a change"),
    "bulky_tokens": _("Bulky from (tokens)"),
}
AT_MOST = _("The most that is left. What tells nothing new goes in any case, so less may be left.")
PARAMETERS = (
    Group(
        name="trim_payloads",
        fields=tuple(
            Field(path=f"payloads.{one.name}", label=PAYLOAD_LABELS[one.name]) for one in fields(PayloadLimits)
        ),
    ),
    of_strategy(
        "summarize_old",
        ("old_threshold", _("Share that is old")),
        ("summary_length", _("Summary length (tokens)")),
        ("min_coherence", _("Least coherence")),
    ),
    of_strategy(
        "prioritize_recent",
        ("rel_threshold", _("Least relevance")),
        ("recent_bias", _("Newest share that stays")),
        ("priority_boost", _("P1 boost")),
    ),
    of_strategy(
        "content_type_chunking.compress_ratios",
        (
            "code",
            _("Left of code"),
            _("Comments and blank lines go, and never more. 1 leaves code as it is; other shares are all the same."),
        ),
        ("text", _("Left of text")),
        ("plan_ref", _("Left of plans")),
        ("log", _("Left of logs"), AT_MOST),
        ("other", _("Left of the rest"), AT_MOST),
    ),
    of_strategy(
        "discard_low_rel",
        ("discard_percent", _("Share to discard")),
        ("placeholder_detail", _("Placeholders")),
        ("min_coherence", _("Least coherence")),
        choices=PlaceholderDetail,
    ),
    of_strategy("hybrid", ("max_iterations", _("Most iterations"))),
    Group(
        name="sliding_window",
        fields=(
            Field(
                path=f"{BREAKING}.sliding_window.max_messages",
                label=_("Most messages"),
                hint=_("12 to 16 for short tasks, 20 to 24 for normal ones, 30 to 40 for complex ones."),
                presets=((16, _("short tasks")), (24, _("normal tasks")), (40, _("complex tasks"))),
            ),
            Field(path=f"{BREAKING}.sliding_window.recent_share", label=_("Newest share that stays")),
        ),
    ),
    of_strategy("select_passages", ("fill", _("Share to fill"))),
)
GROUPS = (LIMITS, HOW, LM_STUDIO, AIMS, RECOVERY, LEARNING, RETRIES, *PARAMETERS)


def every_field() -> Iterator[Field]:
    yield from (field for group in GROUPS for field in group.fields)


def value_at(config: ContextConfig, path: str) -> object:
    """What the configuration says at a field's path."""
    found: object = config
    for name in path.removeprefix(f"{BREAKING}.").replace(RETRY_DEFAULT, "retry_default").split("."):
        found = getattr(found, name)
    return found
