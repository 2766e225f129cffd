"""Strategy `trim_payloads`: bulky payloads are made short by what they are, before anything is dropped (design 6).

Tool results, and JSON, logs and diffs inside of messages. Identifiers that are in play, because somebody speaks of
them elsewhere, keep their elements and lines. Code is left to `content_type_chunking`. The results that the model is
still to answer stay as they are, unless they do not fit beside what must stay.
"""

from __future__ import annotations

from dataclasses import replace

from health.compaction.clamp import evened
from health.compaction.code_languages import guess, lexer_of
from health.compaction.fences import Block, blocks, joined
from health.compaction.floor import is_too_much, must_stay, oversized
from health.compaction.importance import is_ui_tool
from health.compaction.invariants import is_marked, open_round, protected_ids
from health.compaction.payloads import is_json, trim
from health.compaction.ports import Asking, Attempt, Kit, unchanged
from health.compaction.pressure import marks
from health.compaction.reasons import Why
from health.compaction.rewording import in_play, is_bulky, reworded
from health.compaction.units import WRITTEN, ContextState, Kind, Role, Unit, tools_by_result, total

# Labels of fences that hold data. Of the others, those that no lexer knows are data too.
_DATA_LABELS = frozenset({"json", "jsonl", "diff", "patch", "log", "text", "txt", "console", "output"})


def trim_payloads(state: ContextState, kit: Kit) -> Asking:
    yield from ()
    protected = protected_ids(state.units)
    bulky = [unit for unit in state.units if unit.id not in protected and _is_payload(unit, state)]
    tools, keep = tools_by_result(state.units), in_play(state) if bulky else frozenset()
    contents = {unit.id: _trimmed(unit, tools.get(unit.id, ""), keep, state) for unit in bulky}
    attempt = reworded(contents, state, kit) or unchanged(state, Why.NO_PAYLOAD)
    return _with_open_results(attempt, kit) if is_too_much(state, kit) else attempt


def _with_open_results(attempt: Attempt, kit: Kit) -> Attempt:
    """Results of the open round made short too, as they do not fit beside what must stay: no more than it takes."""
    state, tools = attempt.state, tools_by_result(attempt.state.units)
    opened = [unit for unit in open_round(state.units) if unit.role is Role.TOOL and not is_marked(unit)]
    contents: dict[str, str] = {}
    for unit in sorted(opened, key=lambda unit: -total([unit])):
        contents[unit.id] = _trimmed(unit, tools.get(unit.id, ""), in_play(state), state)
        short = reworded(contents, state, kit)
        if short and not is_too_much(short.state, kit):
            return _joined(attempt, short)
    short = reworded(contents, state, kit) or attempt
    may = frozenset(unit.id for unit in opened)
    said = oversized(short.state)
    units = evened(short.state.units, may=may, excess=_excess(short.state, kit), kit=kit, said=said)
    return _joined(attempt, replace(short, state=state.having(units), changed=short.changed or units != state.units))


def _excess(state: ContextState, kit: Kit) -> int:
    """By how much what must stay passes what is acceptable."""
    return must_stay(state, kit) - marks(state.config, limit=state.limit).accept


def _joined(attempt: Attempt, short: Attempt) -> Attempt:
    opened = short.state.units != attempt.state.units
    reads = attempt.reads + short.reads if short is not attempt else attempt.reads
    changed = attempt.changed or short.changed
    return replace(short, changed=changed, why=None if changed else short.why, reads=reads, shortens_open=opened)


def _is_payload(unit: Unit, state: ContextState) -> bool:
    return unit.kind not in WRITTEN and unit.kind is not Kind.PLAN_REF and is_bulky(unit, state)


def _trimmed(unit: Unit, tool: str, keep: frozenset[str], state: ContextState) -> str:
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
