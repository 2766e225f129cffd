"""What stands on the settings page: every text as it was typed, whether it makes sense or not.

Texts have the names of their inputs: a key's path, `per_llm[0].limit`, `retry_policies.per_tool[0].tool`. Numbers in
brackets are rows of the page; they need not be without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml
from django.http import QueryDict

from dialogs.compaction.settings.fields import BREAKING, Field, every_field, value_at
from health.compaction.config import ContextConfig, RetryPolicy
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import OWN, own_as_yaml

LLMS, TOOLS = "per_llm", "retry_policies.per_tool"
CHAIN = f"{BREAKING}.chain_order"
RETRY_KEYS = ("max_attempts", "backoff_base_seconds", "max_delay_seconds")
ROW = re.compile(r"(per_llm|retry_policies\.per_tool)\[(\d{1,4})\]\.(\w+)")
WHOLE, GROUPED = re.compile(r"-?\d{1,9}"), re.compile(r"\d{1,3}(,\d{3}){1,2}")
MOST_CHARS, MOST_ROWS = 200, 100
MOST_OWN_CHARS = 10_000


@dataclass(frozen=True, kw_only=True)
class Sheet:
    texts: Mapping[str, str]
    chain: tuple[str, ...]

    @classmethod
    def of(cls, config: ContextConfig) -> Sheet:
        default = ContextConfig()
        texts = {
            field.path: written(value_at(config, field.path))
            for field in every_field()
            if field.is_filled or value_at(config, field.path) != value_at(default, field.path)
        }
        for at, llm in enumerate(config.per_llm):
            texts |= {f"{LLMS}[{at}].type": llm.type, f"{LLMS}[{at}].limit": str(llm.limit)}
            texts |= {f"{LLMS}[{at}].follow_default": "on"} if llm.follow_default else {}
            texts |= {f"{LLMS}[{at}].{OWN}": own_as_yaml(llm.own)} if llm.own else {}
        for at, (tool, policy) in enumerate(config.retry_per_tool):
            texts |= _tool_texts(at, tool, policy, config.retry_default)
        return cls(texts=texts, chain=config.chain_order)

    @classmethod
    def posted(cls, data: QueryDict) -> Sheet:
        """A limit that is switched off is not sent by browsers: what it was is kept beside it."""
        known = {field.path for field in every_field()}
        texts = {name: _short(name, str(data[name])) for name in data if name in known or ROW.fullmatch(name)}
        for name in [name for name in texts if name.endswith(".kept")]:
            texts.setdefault(name.replace(".kept", ".limit"), texts.pop(name))
        return cls(texts=texts, chain=tuple(data.getlist(CHAIN))[:MOST_ROWS])

    def rows(self, prefix: str) -> list[int]:
        found = {int(match[2]) for match in map(ROW.fullmatch, self.texts) if match and match[1] == prefix}
        return sorted(found)[:MOST_ROWS]

    def said(self, prefix: str) -> list[int]:
        """The rows in which anything stands, in the order of the document."""
        return [at for at in self.rows(prefix) if any(self._row(prefix, at).values())]

    def _row(self, prefix: str, at: int) -> dict[str, str]:
        begin = f"{prefix}[{at}]."
        return {name[len(begin) :]: text.strip() for name, text in self.texts.items() if name.startswith(begin)}

    def document(self) -> dict[str, Any]:
        """The YAML's content. What is empty is left out, and has its default."""
        found: dict[str, Any] = {}
        for field in every_field():
            text = self.texts.get(field.path, "").strip()
            if text:
                _put(found, field.path, _value(field, text))
        _put(found, CHAIN, list(self.chain))
        _put(found, LLMS, [self._llm(self._row(LLMS, at)) for at in self.said(LLMS)])
        tools = (self._row(TOOLS, at) for at in self.said(TOOLS))
        _put(found, TOOLS, {row.get("tool", ""): _policy(row) for row in tools})
        return found

    def _llm(self, row: Mapping[str, str]) -> dict[str, Any]:
        follows = "follow_default" in row
        limit = row.get("limit") or (self.texts.get("default_limit") if follows else "") or ""
        own = {OWN: _document(row[OWN])} if row.get(OWN) else {}
        return {"type": row.get("type", ""), "limit": number_in(limit), "follow_default": follows, **own}

    def name_of(self, path: str) -> str:
        """The input that holds the key at this path of the document; the path itself where none does."""
        for at, row in enumerate(self.said(LLMS)):
            path = path.replace(f"{LLMS}[{at}].", f"{LLMS}[row {row}].")
        for row in self.said(TOOLS):
            tool = self.texts.get(f"{TOOLS}[{row}].tool", "").strip()
            path = path.replace(f"{TOOLS}.{tool}.", f"{TOOLS}[{row}].", 1) if tool else path
        for field in every_field():
            path = field.path if field.is_list and path.startswith(f"{field.path}[") else path
        # All that is wrong inside a type's own settings is told beside their one field.
        return re.sub(rf"^({LLMS}\[\d+\]\.{OWN})\b.*", r"\1", path.replace("[row ", "["))

    def after(self, action: str, added: str = "") -> Sheet:
        """The sheet after a button: `up:2`, `llm-remove:0`, `chain-add` with the strategy that was chosen."""
        name, _, place = action.partition(":")
        at = int(place) if WHOLE.fullmatch(place) else -1
        deed = DEEDS.get(name)
        return deed(self, at, added) if deed else self

    def moved(self, at: int, by: int) -> Sheet:
        if not (0 <= at < len(self.chain) and 0 <= at + by < len(self.chain)):
            return self
        chain = list(self.chain)
        chain.insert(at + by, chain.pop(at))
        return replace(self, chain=tuple(chain))

    def dropped(self, at: int) -> Sheet:
        return replace(self, chain=tuple(name for place, name in enumerate(self.chain) if place != at))

    def lengthened(self, strategy: str) -> Sheet:
        return replace(self, chain=(*self.chain, strategy)) if strategy in REGISTRY else self

    def with_row(self, prefix: str, key: str) -> Sheet:
        return replace(self, texts={**self.texts, f"{prefix}[{max(self.rows(prefix), default=-1) + 1}].{key}": ""})

    def without_row(self, prefix: str, at: int) -> Sheet:
        begin = f"{prefix}[{at}]."
        return replace(self, texts={name: text for name, text in self.texts.items() if not name.startswith(begin)})


DEEDS: Mapping[str, Callable[[Sheet, int, str], Sheet]] = {
    "up": lambda sheet, at, _added: sheet.moved(at, -1),
    "down": lambda sheet, at, _added: sheet.moved(at, 1),
    "drop": lambda sheet, at, _added: sheet.dropped(at),
    "chain-add": lambda sheet, _at, added: sheet.lengthened(added),
    "llm-add": lambda sheet, _at, _added: sheet.with_row(LLMS, "type"),
    "llm-remove": lambda sheet, at, _added: sheet.without_row(LLMS, at),
    "tool-add": lambda sheet, _at, _added: sheet.with_row(TOOLS, "tool"),
    "tool-remove": lambda sheet, at, _added: sheet.without_row(TOOLS, at),
}


def _short(name: str, text: str) -> str:
    return text[: MOST_OWN_CHARS if name.endswith(f".{OWN}") else MOST_CHARS]


def _document(text: str) -> object:
    """The YAML of a type's own settings. Text that is no YAML stays text: `configuration.load` refuses it."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text


def number_in(text: str) -> int | float | str:
    """The number that a person typed, `3,500` too. Other text stays text: `configuration.load` refuses it."""
    if WHOLE.fullmatch(text) or GROUPED.fullmatch(text):
        return int(text.replace(",", ""))
    try:
        return float(text) if "_" not in text and not text.isdigit() else text
    except ValueError:
        return text


def _value(field: Field, text: str) -> object:
    if field.is_list:
        return [name.strip() for name in text.split(",") if name.strip()]
    return text if field.choices else number_in(text)


def written(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _policy(row: Mapping[str, str]) -> dict[str, Any]:
    return {key: number_in(row[key]) for key in RETRY_KEYS if row.get(key)}


def _tool_texts(at: int, tool: str, policy: RetryPolicy, default: RetryPolicy) -> Iterator[tuple[str, str]]:
    """The texts of a tool's row. A value that is the default policy's is inherited, and its text is empty."""
    yield f"{TOOLS}[{at}].tool", tool
    for key in RETRY_KEYS:
        value = getattr(policy, key)
        yield f"{TOOLS}[{at}].{key}", "" if value == getattr(default, key) else written(value)


def _put(document: dict[str, Any], path: str, value: object) -> None:
    *sections, key = path.split(".")
    for name in sections:
        document = document.setdefault(name, {})
    document[key] = value
