"""A dialog with everything in it that a file must carry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dialogs.models import Course, Dialog, Generation, Message, QueuedMessage
from dialogs.services.generations import keep_blob
from health.monitor.levels import Configured
from health.monitor.usage import Usage, UsageUnavailable
from health.services import record_reading

FENCED = "Here:\n\n```python\nprint('¡hola! 你好 🙂')\n```"


class Writer:
    """Adds messages and generations to a dialog, one after the other."""

    def __init__(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self.course = Course.objects.get(dialog=dialog)
        self.seq = self.calls = 0

    def say(self, content: str, *, parent: Message | None, role: str = "user", **fields: Any) -> Message:
        self.seq += 1
        origin = "typed" if role == "user" else "agent"
        return Message.objects.create(
            dialog=self.dialog, course=self.course, seq=self.seq, parent=parent, turn=1, role=role, origin=origin,
            content=content, **fields,
        )  # fmt: skip

    def call(self, prompt: Message, *, usage: Usage | UsageUnavailable, **fields: Any) -> Generation:
        self.calls += 1
        counts = {} if isinstance(usage, UsageUnavailable) else dict(vars(usage))
        sent = {"messages": [prompt.pk], "instructions": keep_blob("You help."), "options": {"max_output_tokens": 9}}
        return Generation.objects.create(
            dialog=self.dialog, course=self.course, number=self.calls, turn=1, llm=self.dialog.llm,
            llm_name=self.dialog.llm.slug, prompt_leaf=prompt, fencing_token=7, manifest=sent, **counts, **fields,
        )  # fmt: skip

    def judge(self, generation: Generation, usage: Usage | UsageUnavailable) -> None:
        limits = Configured(context_length=1000, optimal_max_tokens=500)
        record_reading(generation_id=generation.pk, usage=usage, configured=limits, window_source="admin")


@pytest.fixture
def full_dialog(dialog: Dialog) -> Dialog:
    """A question asked twice, a failed try, a caution, an unknown, a stopped answer, one message waiting."""
    write = Writer(dialog)
    first = write.say("What is in the box?", parent=None)
    second = write.say("What is *really* in the box?", parent=None)
    write.call(second, usage=UsageUnavailable(), status="failed", error_code="rate_limited", error_message="429")
    answer = write.say(FENCED, parent=second, role="assistant", parts={"reasoning": "Hm."})
    usage = Usage(prompt_tokens=600, completion_tokens=20, total_tokens=620, cached_tokens=None)
    write.judge(write.call(second, usage=usage, status="finished", message=answer, usage_raw={"n": 1}), usage)
    cut = write.say("A cat, and", parent=first, role="assistant", cut_short=True)
    silent = write.call(first, usage=UsageUnavailable(), status="stopped", message=cut)
    write.judge(silent, UsageUnavailable())
    QueuedMessage.objects.create(dialog=dialog, content="And then?")
    dialog.title, dialog.titled_by_person = "The box", True
    dialog.current_leaf, dialog.last_seq = answer, write.seq
    dialog.save()
    # Long ago, so that a date lost on the way is noticed.
    Message.objects.update(created_at=timezone.now() - timedelta(days=400))
    return dialog
