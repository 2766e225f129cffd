"""A guarded dialog with a history, for tests of compaction: what was said, and how much of it there is."""

from __future__ import annotations

from dialogs.context.estimate import present_tokens
from dialogs.models import LLM, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from health.models import LlmCalibration

RULE = "Never deploy on a Friday, and always write to /srv/reports/2031."
TOPICS = ("pump", "valve", "boiler", "turbine", "filter", "sensor", "panel", "rotor", "cable", "switch")


def sentence(number: int) -> str:
    """Twenty words or so, different for every number, so that no two messages say the same."""
    first, second = TOPICS[number % 10], TOPICS[number // 10 % 10]
    shown = number * 37 % 991
    return f"Reading {number}: the {first} beside the {second} shows {shown} units after the check, as was expected."


def long_text(number: int, sentences: int = 4) -> str:
    return " ".join(sentence(number * 100 + at) for at in range(sentences))


def a_history(dialog: Dialog, *, pairs: int, sentences: int = 4) -> list[Message]:
    """What Alice and the agent said so far, in a window with room for it; the first thing she said is a rule."""
    if dialog.llm.context_length == 1000:
        dialog.llm.context_length = 100_000
        dialog.llm.save()
    said: list[Message] = []
    for number in range(pairs):
        asked = RULE if number == 0 else f"Question {number}. {long_text(number, sentences)}"
        answered = f"Answer {number}. {long_text(number + 500, sentences)}"
        for role, origin, content in (
            (Role.USER, MessageOrigin.TYPED, asked),
            (Role.ASSISTANT, MessageOrigin.AGENT, answered),
        ):
            said.append(add_message(dialog, role=role, origin=origin, content=content, parent=dialog.current_leaf))
    dialog.save()
    return said


def calibrate(llm: LLM) -> None:
    """Its server reported of three long prompts what was estimated: no margin is needed any more."""
    LlmCalibration.objects.update_or_create(llm=llm, defaults={"samples": [[20_000, 20_000, 20_000]] * 3})


def guard(dialog: Dialog, limit: int = 3500, window: int | None = 100_000) -> None:
    """Give its agent a limit; unless told otherwise, the window is far above it, and the estimates of its LLM are known
    to be right."""
    calibrate(dialog.llm)
    dialog.agent.context_budget, dialog.agent.context_limit = True, limit
    dialog.agent.save()
    dialog.llm.context_length, dialog.llm.optimal_max_tokens, dialog.llm.compaction = window, None, "automatic"
    dialog.llm.save()


def estimated(dialog: Dialog) -> int:
    """What the next request would take."""
    return present_tokens(dialog_to_drive(dialog.pk))
