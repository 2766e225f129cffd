"""The table of settings with one value: the key's path in the YAML, and the texts of its field; and the texts of the
settings page by the names of its inputs, checked or not.

The default determines the kind of field: a choice, names separated by commas, or a number. Lists (LLM types, the chain,
tools' retries) are in `form`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from health.compaction.config import ContextConfig, RetryPolicy
from health.compaction.strategies import REGISTRY
from health.compaction.terms.config_checks import Check
from health.compaction.terms.configuration import BREAKING, OWN, RETRY, checks_of, own_as_yaml

DEFAULTS = ContextConfig()
RETRY_DEFAULT = "retry_policies.default"
Presets = tuple[tuple[int, Promise], ...]


class Words(NamedTuple):
    """The texts of a field. `presets`: offered numbers, each with its purpose."""

    label: Promise
    hint: Promise | str = ""
    presets: Presets = ()


AT_MOST = _("The most that is left. What tells nothing new goes in any case, so less may be left.")
WHOLE_CODE = _("Comments and blank lines go, and never more. 1 leaves code as it is; other shares are all the same.")
# By the part of the page in which they stand. A strategy's part has its name.
PARTS: Mapping[str, Mapping[str, Words]] = {
    "limits": {
        "min_limit": Words(_("Min limit (tokens)"), _("The floor: never below 3,500.")),
        "default_limit": Words(
            _("Default limit (tokens)"), _("For agents and LLM types without a limit of their own.")
        ),
        "warning_threshold": Words(
            _("Warning threshold"),
            _("A share of the limit, at most 0.9: above it, compaction begins before anything is sent."),
        ),
    },
    "how": {
        "how": Words(
            _("What runs first"),
            _(
                "Passages keep the sentences, records and lines that will be needed, word for word, chosen from all "
                "that was said; the chain runs only where that does not suffice. The chain runs the strategies below "
                "in their order."
            ),
        ),
    },
    "lm_studio": {
        "lm_studio": Words(
            _("With LM Studio"),
            _(
                "Without a model, LM Studio's dialogs are compacted as all others are: passages or the chain, in a "
                "second or less."
            ),
        ),
        "summaries": Words(
            _("Summaries"),
            _(
                "Of sentences that were said, at once; or by the pruning agent’s model. What it writes is checked, and "
                "made of sentences where it invents, refuses or is late."
            ),
        ),
        "prepare": Words(
            _("Ask the pruning agent beforehand"),
            _(
                "While there is still room, so that nobody waits for it when the context is full. Without charge: on a "
                "server of its own, or with two requests at once, here or in a private network, and without a price."
            ),
        ),
        "prepare_from": Words(_("Asked beforehand from"), _("A share of the threshold at which compaction begins.")),
    },
    "aims": {
        "goal": Words(_("Goal"), _("A run stops at this share of the limit.")),
        "accept": Words(_("Good enough"), _("A run that reaches no more than this share is content.")),
        "min_gain": Words(_("Least gain"), _("A run that frees a smaller share is not applied.")),
        "ledger_share": Words(_("Ledger"), _("The share of the limit for what the user stated, word for word.")),
        "priority_areas": Words(
            _("Areas of first priority"),
            _("Names with commas between. A message that is given one of these areas gets P1."),
        ),
    },
    "recovery": {
        "recovery_mode": Words(_("Recovery mode")),
        "handover_tokens": Words(_("Handover (tokens)"), _("What a fresh start begins with.")),
        "at_milestone": Words(_("Fresh start at a milestone"), _("When the task of a P1 message is done.")),
        "on_over_hits": Words(
            _("Fresh start after over-hits"),
            _("When an agent’s context was over its limit three times in an hour; a P1 agent’s once."),
        ),
    },
    "learning": {
        "reward_log": Words(
            _("Log of rewards"),
            _("One line for each compaction, in the data folder: numbers and names, never what was said."),
        ),
        "reward_log_days": Words(_("Days that it keeps a line")),
    },
    "retries": {
        f"{RETRY_DEFAULT}.max_attempts": Words(_("Most tries")),
        f"{RETRY_DEFAULT}.backoff_base_seconds": Words(_("First wait (seconds)")),
        f"{RETRY_DEFAULT}.max_delay_seconds": Words(_("Longest wait (seconds)")),
    },
    "trim_payloads": {
        "payloads.max_text_chars": Words(_("Characters of a text")),
        "payloads.max_data_chars": Words(_("Characters of data")),
        "payloads.max_ui_nodes": Words(_("Nodes of an interface")),
        "payloads.max_ui_depth": Words(_("Levels of an interface")),
        "payloads.max_ui_children": Words(_("Children of a node")),
        "payloads.max_web_elements": Words(_("Elements of a web page")),
        "payloads.max_actions": Words(_("Actions")),
        "payloads.array_head": Words(_("First elements of a list")),
        "payloads.array_tail": Words(_("Last elements of a list")),
        "payloads.map_keys": Words(_("Keys of a mapping")),
        "payloads.log_edge_lines": Words(_("Lines at each end of a log")),
        "payloads.diff_context_lines": Words(_("Lines around a change")),
        "payloads.bulky_tokens": Words(_("Bulky from (tokens)")),
    },
    "summarize_old": {
        f"{BREAKING}.summarize_old.old_threshold": Words(_("Share that is old")),
        f"{BREAKING}.summarize_old.summary_length": Words(_("Summary length (tokens)")),
        f"{BREAKING}.summarize_old.min_coherence": Words(_("Least coherence")),
    },
    "prioritize_recent": {
        f"{BREAKING}.prioritize_recent.rel_threshold": Words(_("Least relevance")),
        f"{BREAKING}.prioritize_recent.recent_bias": Words(_("Newest share that stays")),
        f"{BREAKING}.prioritize_recent.priority_boost": Words(_("P1 boost")),
    },
    "content_type_chunking": {
        f"{BREAKING}.content_type_chunking.compress_ratios.code": Words(_("Left of code"), WHOLE_CODE),
        f"{BREAKING}.content_type_chunking.compress_ratios.text": Words(_("Left of text")),
        f"{BREAKING}.content_type_chunking.compress_ratios.plan_ref": Words(_("Left of plans")),
        f"{BREAKING}.content_type_chunking.compress_ratios.log": Words(_("Left of logs"), AT_MOST),
        f"{BREAKING}.content_type_chunking.compress_ratios.other": Words(_("Left of the rest"), AT_MOST),
    },
    "discard_low_rel": {
        f"{BREAKING}.discard_low_rel.discard_percent": Words(_("Share to discard")),
        f"{BREAKING}.discard_low_rel.placeholder_detail": Words(_("Placeholders")),
        f"{BREAKING}.discard_low_rel.min_coherence": Words(_("Least coherence")),
    },
    "hybrid": {f"{BREAKING}.hybrid.max_iterations": Words(_("Most iterations"))},
    "sliding_window": {
        f"{BREAKING}.sliding_window.max_messages": Words(
            _("Most messages"),
            _("12 to 16 for short tasks, 20 to 24 for normal ones, 30 to 40 for complex ones."),
            ((16, _("short tasks")), (24, _("normal tasks")), (40, _("complex tasks"))),
        ),
        f"{BREAKING}.sliding_window.recent_share": Words(_("Newest share that stays")),
    },
    "select_passages": {f"{BREAKING}.select_passages.fill": Words(_("Share to fill"))},
}
FIELDS: Mapping[str, Words] = {path: words for part in PARTS.values() for path, words in part.items()}
# What each word of a choice is called.
CHOICES: Mapping[str, Promise] = {
    "passages": _("Passages first"),
    "chain": _("The chain first"),
    "pruning_agent": _("The pruning agent decides"),
    "no_model": _("No model is asked"),
    "extractive": _("Of sentences that were said"),
    "model": _("By the pruning agent’s model"),
    "free": _("Where nobody waits and nothing is charged"),
    "always": _("Always"),
    "fresh_start": _("Fresh start with a handover"),
    "truncate": _("Cut off what is oldest"),
    "error": _("Stop with an error"),
    "never": _("Never"),
    "offer": _("Offer it"),
    "automatic": _("Do it at once"),
    "brief": _("Brief"),
    "linked": _("With a link to what was left out"),
    "off": _("Off"),
    "on": _("On"),
}


@cache
def check_at(path: str) -> Check:
    """What the value at a key's path may be."""
    section, _dot, key = path.rpartition(".")
    return checks_of(type(value_at(DEFAULTS, section)))[key]


def value_at(config: ContextConfig, path: str) -> object:
    """What the configuration says at a key's path."""
    found: object = config
    for name in path.removeprefix(f"{BREAKING}.").replace(RETRY_DEFAULT, "retry_default").split("."):
        found = getattr(found, name) if name else found
    return found


LLMS, TOOLS = "per_llm", "retry_policies.per_tool"
CHAIN = f"{BREAKING}.chain_order"
# The list that a button's name begins with, and the field in which a new row begins.
LISTS = {"llm": (LLMS, "type"), "tool": (TOOLS, "tool")}
ROW = re.compile(r"(per_llm|retry_policies\.per_tool)\[(\d{1,9})\]\.\w+")
PLACE = re.compile(r"\d{1,9}")
NOWHERE = 10**9
# What must be written in quotes, for commas stand between names.
QUOTED = re.compile(r'^"|,')
Texts = Mapping[str, Any]


def texts_of(config: ContextConfig) -> dict[str, Any]:
    """Everything that has a value; a strategy's numbers only where they are not the default, which stands behind."""
    texts: dict[str, Any] = {CHAIN: list(config.chain_order)}
    for path in FIELDS:
        value = value_at(config, path)
        if value != value_at(DEFAULTS, path) or not path.startswith((BREAKING, "payloads")):
            texts[path] = written(value)
    for at, llm in enumerate(config.per_llm):
        row = {"type": llm.type, "limit": str(llm.limit), "follow_default": llm.follow_default}
        texts |= {f"{LLMS}[{at}].{key}": value for key, value in row.items()} | {
            f"{LLMS}[{at}].{OWN}": own_as_yaml(llm.own)
        }
    for at, (tool, policy) in enumerate(config.retry_per_tool):
        texts |= {f"{TOOLS}[{at}].{key}": text for key, text in _of_tool(tool, policy, config.retry_default)}
    return texts


def _of_tool(tool: str, policy: RetryPolicy, default: RetryPolicy) -> Iterator[tuple[str, str]]:
    """The texts of a tool's row. A value that is the default policy's is inherited, and its text is empty."""
    yield "tool", tool
    for key in RETRY:
        value = getattr(policy, key)
        yield key, "" if value == getattr(default, key) else written(value)


def typed(data: QueryDict) -> dict[str, Any]:
    """What was sent. A limit that is switched off is not sent by browsers: what it was is kept beside it."""
    kept = {f"{name.removesuffix('kept')}limit": str(data[name]) for name in data if name.endswith("].kept")}
    return kept | data.dict() | {CHAIN: data.getlist(CHAIN)}


def rows_of(prefix: str, texts: Texts) -> list[int]:
    found = {int(match[2]) for match in map(ROW.fullmatch, texts) if match and match[1] == prefix}
    return sorted(found)


def after(texts: Texts, action: str, added: str = "") -> tuple[dict[str, Any], str]:
    """The texts after a button, and the id of the element that has the keyboard's focus then.

    `up:2`, `down:2` and `drop:2` of the chain, `chain-add` with the strategy that was chosen, `llm-add`,
    `llm-remove:0`, `tool-add`, `tool-remove:0`. A strategy that is moved keeps the focus; a row that is new gets it;
    what is gone gives it to its list.
    """
    name, _, place = action.partition(":")
    at = int(place) if PLACE.fullmatch(place) else NOWHERE
    chain: list[str] = list(texts[CHAIN])
    prefix, first = LISTS.get(name.partition("-")[0], ("", ""))
    focus = ""
    if name in {"up", "down"} and at < len(chain):
        moved = chain.pop(at)
        chain.insert(max(0, at - 1) if name == "up" else at + 1, moved)
        focus = f"chain-{name}-{moved}"
    elif name == "drop":
        del chain[at : at + 1]
        focus = "chain-addable"
    elif name == "chain-add":
        chain += [added] if added in REGISTRY else []
        focus = "chain-addable"
    elif name in {"llm-remove", "tool-remove"}:
        texts = {name: text for name, text in texts.items() if not name.startswith(f"{prefix}[{at}].")}
        focus = f"{name.removesuffix('remove')}add"
    elif name in {"llm-add", "tool-add"}:
        begun = f"{prefix}[{max(rows_of(prefix, texts), default=-1) + 1}].{first}"
        texts = {**texts, begun: ""}
        focus = id_of(begun)
    return {**texts, CHAIN: chain}, focus


def id_of(name: str) -> str:
    """The id of the input of this name: brackets and dots have a meaning in selectors."""
    return "setting-" + "".join(letter if letter.isalnum() else "-" for letter in name)


def written(value: object) -> str:
    if isinstance(value, tuple):
        return joined(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def joined(names: Iterable[object]) -> str:
    """Names with commas between; one that has a comma itself stands in quotes."""
    return ", ".join(_quoted(str(name)) for name in names)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if QUOTED.search(name) else name


def parted(text: str) -> list[str]:
    """The names that `joined` wrote, or that a person did."""
    names = next(csv.reader([text], skipinitialspace=True), []) if text else []
    return [name.strip() for name in names if name.strip()]
