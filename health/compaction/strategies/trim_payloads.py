"""Strategy `trim_payloads`: bulky payloads are made short by what they are, before anything is dropped (design 6).

Tool results, and JSON, logs and diffs inside of messages. Identifiers that are in play, because somebody speaks of
them elsewhere, keep their elements and lines. Code is left to `content_type_chunking`. The results that the model is
still to answer stay as they are.
"""

from __future__ import annotations

from health.compaction.code_languages import guess, lexer_of
from health.compaction.fences import Block, blocks, joined
from health.compaction.importance import is_ui_tool
from health.compaction.invariants import protected_ids
from health.compaction.payloads import is_json, trim
from health.compaction.ports import Asking, Kit, unchanged
from health.compaction.reasons import Why
from health.compaction.rewording import in_play, is_bulky, reworded
from health.compaction.units import WRITTEN, ContextState, Kind, Role, Unit, tools_by_result

# Labels of fences that hold data. Of the others, those that no lexer knows are data too.
_DATA_LABELS = frozenset({"json", "jsonl", "diff", "patch", "log", "text", "txt", "console", "output"})


def trim_payloads(state: ContextState, kit: Kit) -> Asking:
    yield from ()
    protected = protected_ids(state.units)
    bulky = [unit for unit in state.units if unit.id not in protected and _is_payload(unit, state)]
    tools, keep = tools_by_result(state.units), in_play(state) if bulky else frozenset()
    contents = {unit.id: trimmed(unit, tools.get(unit.id, ""), keep, state) for unit in bulky}
    return reworded(contents, state, kit) or unchanged(state, Why.NO_PAYLOAD)


def _is_payload(unit: Unit, state: ContextState) -> bool:
    return unit.kind not in WRITTEN and unit.kind is not Kind.PLAN_REF and is_bulky(unit, state)


def trimmed(unit: Unit, tool: str, keep: frozenset[str], state: ContextState) -> str:
    """What the unit says, as short as what it is allows; `tool` is whose result it is."""
    limits = state.config.payloads
    if unit.kind is Kind.LOG or is_json(unit.content) or is_ui_tool(tool):
        return trim(unit.content, tool=tool, keep=keep, limits=limits)
    if unit.role is Role.TOOL:
        return unit.content if unit.kind is Kind.CODE else trim(unit.content, keep=keep, limits=limits)
    parts = blocks(unit.content)
    return joined(part.saying(trim(part.body, keep=keep, limits=limits)) if _is_data(part) else part for part in parts)


def _is_data(part: Block) -> bool:
    """Whether a block is data to be trimmed: not prose, and not code."""
    if part.label is None:
        return False
    return part.label.lower() in _DATA_LABELS or lexer_of(part.label or guess(part.body)) is None
