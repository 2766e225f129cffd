"""What stands on the settings page, before it makes sense or not: a form's data or its initial values.

Texts have the names of their inputs: a key's path, `per_llm[0].limit`, `retry_policies.per_tool[0].tool`. Numbers in
brackets are rows of the page; they need not be without gaps. The chain is a list of names.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.http import QueryDict

from dialogs.compaction.settings.fields import DEFAULTS, FIELDS, value_at
from health.compaction.config import ContextConfig, RetryPolicy
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import BREAKING, OWN, RETRY, own_as_yaml

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
