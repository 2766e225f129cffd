"""Strategy `trim_payloads`: bulky payloads are made short by what they are, before anything is dropped (design 6).

Tool results, and JSON, logs and diffs inside of messages. Identifiers that are in play, because somebody speaks of
them elsewhere, keep their elements and lines. Code is left to `content_type_chunking`. The results that the model is
still to answer stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from health.compaction.laws.invariants import protected_ids
from health.compaction.reading.code import Block, blocks, joined
from health.compaction.reading.code_languages import guess, lexer_of
from health.compaction.reading.importance import is_ui_tool
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.pressure import targets
from health.compaction.terms.reasons import Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Role, Unit, tools_by_result
from health.compaction.trimming.payloads import is_json, trim
from health.compaction.trimming.rewording import in_play, is_bulky, reworded

# Rows fill so much of the goal: the ledger stands beside them.
ROOM_SHARE = 0.9
# Labels of fences that hold data. Of the others, those that no lexer knows are data too.
_DATA_LABELS = frozenset({"json", "jsonl", "diff", "patch", "log", "text", "txt", "console", "output"})


@strategy(
    icon="compress",
    label=_("Trim payloads"),
    choice=_("Shorten bulky tool results"),
    message=_("Trimming bulky tool results…"),
)
def trim_payloads(state: ContextState, kit: Kit) -> StrategyRun:
    """As short as the limits of payloads allow; of lists twice as many rows as that while these fit the goal."""
    yield from ()
    protected = protected_ids(state.units)
    bulky = [unit for unit in state.units if unit.id not in protected and _is_payload(unit, state)]
    keep = in_play(state) if bulky else frozenset()
    room = int(ROOM_SHARE * targets(state.config, limit=state.limit).goal)
    found, times = _with_rows(bulky, 1, keep, state, kit), 2
    while found and found.state.estimated_tokens <= room:
        more = _with_rows(bulky, times, keep, state, kit)
        if more is None or not found.state.estimated_tokens < more.state.estimated_tokens <= room:
            break
        found, times = more, 2 * times
    return found or unchanged(state, Why.NO_PAYLOAD)


def _with_rows(
    bulky: Sequence[Unit], times: int, keep: frozenset[str], state: ContextState, kit: Kit
) -> Attempt | None:
    """The payloads trimmed, with so many times as many rows as the limits say; None if none gets shorter."""
    limits, tools = state.config.payloads, tools_by_result(state.units)
    ends = (limits.array_head, limits.array_tail, limits.map_keys)
    head, tail, keys = (times * number for number in ends)
    wide = replace(limits, array_head=head, array_tail=tail, map_keys=keys)
    widened = replace(state, config=replace(state.config, payloads=wide))
    contents = {unit.id: trimmed(unit, tools.get(unit.id, ""), keep, widened) for unit in bulky}
    return reworded(contents, state, kit)


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
