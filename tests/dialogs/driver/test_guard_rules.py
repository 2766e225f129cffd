"""The guard's rules in `decide`: one state at a time, and what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialogs.driver.decide import (
    Action,
    AwaitCompaction,
    CarryNotice,
    ClearMind,
    Compact,
    Generate,
    Halt,
    InsertPrompt,
    NoteStuck,
    Refuse,
    RunTools,
    TakeQueued,
    decide,
)
from dialogs.turns.state import Guarding, Leaf, Policy, State
from health.compaction.terms.pressure import Pressure
from health.compaction.terms.reasons import Reason, Why
from health.monitor.remediation import Due

WHY = Reason(Why.TOO_SMALL, {"usable": 960, "window": 1200, "least": 1024})
WORDS = Reason(Why.WORDS_ALONE, {"words": 900, "tokens": 1200})
ASK = Generate(attempt=1)
ROOMY, HIGH = Guarding(pressure=Pressure.NORMAL), Guarding(pressure=Pressure.HIGH)
OVER = Guarding(pressure=Pressure.OVERFLOW)
OFF = replace(OVER, off=True)
VAIN = replace(HIGH, vain=True)
BEFORE, AFTER_TOOLS, IN_STREAM = Compact("pre_request"), Compact("tool_result"), Compact("stream")
REFUSED = Compact("overflow")
NEW_COURSE = ClearMind(overflow=True)


def due(guard: Guarding | None, **more: object) -> State:
    return replace(State(answer_due=True, guard=guard), **more)


# In the order in which `decide` asks; each row says what comes before what.
TABLE: dict[str, tuple[State, Action]] = {
    # What a person wants comes first.
    "a person who stops is obeyed first": (due(HIGH, stop_requested=True), Halt()),
    "tools run before anything is compacted": (due(HIGH, round_open=True), RunTools()),
    "what was typed is delivered at the end of a round, before a compaction": (
        due(HIGH, leaf=Leaf.RESULT, queued=1),
        TakeQueued(),
    ),
    "before a prompt": (due(ROOMY, leaf=Leaf.RESULT, queued=1, due=Due.CRITICAL), TakeQueued()),
    "before a new course": (due(ROOMY, leaf=Leaf.RESULT, queued=1, due=Due.CLEAR), TakeQueued()),
    "a compaction by hand is waited for": (due(replace(ROOMY, running=True)), AwaitCompaction()),
    # How full it is.
    "nobody is compacted who is not guarded": (due(None), ASK),
    "under the threshold it asks": (due(ROOMY), ASK),
    "above it, it compacts before it asks": (due(HIGH), BEFORE),
    "nearly full too": (due(Guarding(pressure=Pressure.SEVERE)), BEFORE),
    "and where the request would not fit": (due(OVER), BEFORE),
    "a tool's result is the reason where it is the newest": (due(HIGH, leaf=Leaf.RESULT), AFTER_TOOLS),
    "an answer that was cut is the reason where it goes on": (
        due(HIGH, leaf=Leaf.INSERTED, continuing=True),
        IN_STREAM,
    ),
    # What was tried already.
    "what was tried from this message is not tried again": (due(replace(HIGH, tried=True, compactions=1)), ASK),
    "but where the request still does not fit": (due(replace(OVER, tried=True, compactions=1)), BEFORE),
    "what was compacted just before is spared while it fits": (due(replace(HIGH, spared=True)), ASK),
    "and not where it does not": (due(replace(OVER, spared=True)), BEFORE),
    "what gained nothing is not tried again": (due(VAIN), ASK),
    "and what then does not fit is refused": (due(replace(OVER, vain=True)), Refuse()),
    "the fourth compaction of a request is not made": (due(replace(HIGH, compactions=3)), ASK),
    "what still does not fit is not sent": (due(replace(OVER, compactions=3)), Refuse()),
    "where compaction cannot free more that is said, and nothing runs": (
        due(replace(HIGH, stuck=WHY)),
        NoteStuck("pre_request", WHY),
    ),
    "what can never fit is told with its reason": (due(replace(OVER, refused=WHY)), Refuse(WHY)),
    # What a person chose.
    "after an undo what fits is sent as the person wants it": (due(replace(HIGH, held=True)), ASK),
    "after an undo what does not fit is compacted": (due(replace(OVER, held=True)), BEFORE),
    "who undid a compaction did not ask for half an answer": (
        due(replace(HIGH, held=True), leaf=Leaf.INSERTED, continuing=True),
        IN_STREAM,
    ),
    "switched off, nothing is compacted": (due(OFF), ASK),
    "switched off, only what would be cut without a word is refused": (due(replace(OFF, refused=WHY)), Refuse(WHY)),
    "switched off, a refusal is told and nothing is opened": (due(replace(ROOMY, off=True), overflowed=True), Refuse()),
    "switched off, the words that are too long by themselves are named": (
        due(replace(OFF, refused=WHY, alone=WORDS), overflowed=True),
        Refuse(WORDS),
    ),
    "switched off, a filled window is not compacted either": (due(replace(ROOMY, off=True), filled=True), ASK),
    # Compaction comes before prompts and new courses.
    "a compaction comes before the notice": (due(HIGH, due=Due.CRITICAL, leaf=Leaf.TYPED), BEFORE),
    "before a prompt that is due": (due(HIGH, due=Due.CAUTION, leaf=Leaf.RESULT), AFTER_TOOLS),
    "and before a new course that is due": (due(HIGH, due=Due.CLEAR, leaf=Leaf.RESULT), AFTER_TOOLS),
    "where it came to nothing, the notice": (due(VAIN, due=Due.CRITICAL, leaf=Leaf.TYPED), CarryNotice()),
    "the prompt": (due(VAIN, due=Due.CAUTION, leaf=Leaf.RESULT), InsertPrompt()),
    "or the new course comes": (due(VAIN, due=Due.CLEAR, leaf=Leaf.RESULT), ClearMind()),
    "who is reminded first gets the notice": (
        due(HIGH, reminds=True, due=Due.CRITICAL, leaf=Leaf.TYPED),
        CarryNotice(),
    ),
    "is asked above the threshold": (due(HIGH, reminds=True), ASK),
    "and compacted only where the request would not fit": (due(OVER, reminds=True), BEFORE),
    # What the provider refused as too long.
    "a refused prompt is compacted": (due(ROOMY, overflowed=True), REFUSED),
    "after a compaction that is under way": (due(replace(ROOMY, running=True), overflowed=True), AwaitCompaction()),
    "and asked again": (due(replace(ROOMY, tried=True, compactions=1, relieved=True), overflowed=True), ASK),
    "three times": (due(replace(ROOMY, tried=True, compactions=2), overflowed=True), REFUSED),
    "then a new course begins": (due(replace(ROOMY, tried=True, compactions=3), overflowed=True), NEW_COURSE),
    "or at once, where compaction gains nothing": (
        due(replace(ROOMY, tried=True, compactions=1, vain=True), overflowed=True),
        NEW_COURSE,
    ),
    "as where nobody guards": (due(None, overflowed=True), NEW_COURSE),
    "but for a client, who is told": (due(None, overflowed=True, client_driven=True), Refuse()),
    "but not one that would hold the same words": (
        due(replace(ROOMY, vain=True, alone=WHY), overflowed=True),
        Refuse(WHY),
    ),
    "nor where instructions, tools and the newest words are too much": (
        due(replace(OVER, refused=WHY, alone=WHY), overflowed=True),
        Refuse(WHY),
    ),
    "a window that is too small for an answer is tried with what is left": (
        due(replace(OVER, refused=WHY), overflowed=True),
        REFUSED,
    ),
    "a client is told": (due(replace(ROOMY, vain=True), overflowed=True, client_driven=True), Refuse()),
    # An answer that filled the window before a word of it was said.
    "a filled window is compacted": (due(ROOMY, filled=True), IN_STREAM),
    "when the compaction that is under way is over": (
        due(replace(ROOMY, running=True), filled=True),
        AwaitCompaction(),
    ),
    "and nothing where nobody guards": (due(None, filled=True), ASK),
    "and the answer asked for again": (due(replace(ROOMY, relieved=True), filled=True), ASK),
    "as it is, where nothing is gained": (due(replace(ROOMY, vain=True), filled=True), ASK),
    "or three were made": (due(replace(ROOMY, compactions=3), filled=True), ASK),
}


@pytest.mark.parametrize(("state", "action"), TABLE.values(), ids=TABLE.keys())
def test_the_first_rule_that_fits_wins(state: State, action: Action) -> None:
    assert decide(state, Policy()) == action
