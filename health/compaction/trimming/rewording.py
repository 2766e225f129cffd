"""Contents replaced in their place: what strategies share that shorten messages instead of dropping them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from health.compaction.reading.text import of_text
from health.compaction.terms.ports import Attempt, Kit, read_in_full
from health.compaction.terms.units import ContextState, Role, Unit, total
from health.compaction.trimming.payload_text import words_with

_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_LONG_NUMBER = 5


def reworded(contents: Mapping[str, str], state: ContextState, kit: Kit) -> Attempt | None:
    """The state with these contents by unit id, wherever that is fewer tokens; None if nowhere. All was read."""
    asked = [unit for unit in state.units if contents.get(unit.id, unit.content) != unit.content]
    said = kit.counted(unit.saying(contents[unit.id]) for unit in asked)
    smaller = {new.id: new for old, new in zip(asked, said, strict=True) if total([new]) < total([old])}
    if not smaller:
        return None
    reads = read_in_full(unit for unit in asked if unit.id in smaller)
    units = (smaller.get(unit.id, unit) for unit in state.units)
    return Attempt(state=state.with_units(units), changed=True, reads=reads)


def is_bulky(unit: Unit, state: ContextState) -> bool:
    return total([unit]) >= state.config.payloads.bulky_tokens


def in_play(state: ContextState) -> frozenset[str]:
    """Identifiers of which somebody speaks, in the task, a call, or a message that is no payload itself."""
    spoken = [unit.content for unit in state.units if unit.role is not Role.TOOL and not is_bulky(unit, state)]
    calls = [call.arguments for unit in state.units for call in unit.calls]
    return frozenset().union(*map(_identifiers, (state.task, *spoken, *calls)))


@of_text
def _identifiers(text: str) -> frozenset[str]:
    """Words with a letter and a digit, and long numbers; a year or a quantity names nothing."""
    numbered = words_with(_DIGIT, text) if _DIGIT.search(text) else ()
    return frozenset(
        word for word in numbered if _LETTER.search(word) or (word.isdigit() and len(word) >= _LONG_NUMBER)
    )
