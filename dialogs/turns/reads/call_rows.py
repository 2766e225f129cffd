"""Tool calls as they are shown below the answer that made them. Long results are read by their beginning only."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import BigIntegerField, F, QuerySet
from django.db.models.functions import Coalesce, Left, Length

from dialogs.common.text import storable
from dialogs.models import Dialog, Question, ToolCall
from dominds.prepared import Many, prepared

# Every push renders all rows: a result of 200,000 characters is fetched when a person asks for it.
SHOWN_CHARS = 2_000
SHORT_CHARS = 120
RESULT = Coalesce("result_message__content", "result")


@dataclass(frozen=True, kw_only=True)
class CallRow:
    call: ToolCall
    # The beginning of the result, and how long it is in all.
    result: str
    result_chars: int
    # What the model was told instead of the result; empty when it got the result.
    withheld: str
    question: Question | None

    @property
    def key(self) -> str:
        asked = self.question.status if self.question else ""
        return f"{self.call.pk}:{self.call.status}:{self.call.attempt}:{asked}:{bool(self.withheld)}"

    @property
    def is_tried_again(self) -> bool:
        """The call failed for the moment, and waits for its next try."""
        return self.call.status == ToolCall.Status.PENDING and self.call.retry_at is not None

    @property
    def is_cut(self) -> bool:
        return self.result_chars > len(self.result)

    @property
    def short_arguments(self) -> str:
        """One line: `path: notes.txt, lines: 3`; what is no object as it was written."""
        text = " ".join(_or_as_it_is(self.call.arguments, _on_a_line).split())
        return text if len(text) <= SHORT_CHARS else f"{text[:SHORT_CHARS]}…"

    @property
    def arguments(self) -> str:
        """Indented where it is JSON, else as the model wrote it."""
        return _or_as_it_is(self.call.arguments, partial(json.dumps, indent=2, ensure_ascii=False))


def _or_as_it_is(text: str, write: Callable[[Any], str]) -> str:
    """JSON written otherwise. A model may write anything: what is no JSON or too deep stays, half a character goes."""
    try:
        return storable(write(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _on_a_line(found: Any) -> str:
    if not isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False)
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in found.items()
    }
    return ", ".join(f"{name}: {text}" for name, text in texts.items())


def call_rows(message_ids: Collection[int]) -> dict[int, tuple[CallRow, ...]]:
    """The calls of these messages, by message and in their order."""
    found: defaultdict[int, list[CallRow]] = defaultdict(list)
    for call in _calls(message_ids):
        found[call.message_id].append(_row(call))
    return {message_id: tuple(rows) for message_id, rows in found.items()}


@prepared(Many(BigIntegerField()))
def _calls(message_ids: Any) -> QuerySet[Any]:
    return (
        ToolCall.objects.select_related("question")
        .filter(message_id__in=message_ids)
        .annotate(head=Left(RESULT, SHOWN_CHARS), chars=Length(RESULT), answered=F("result_message__parts"))
        .defer("result")
    )


def _row(call: Any) -> CallRow:
    return CallRow(
        call=call,
        result=call.head,
        result_chars=call.chars,
        withheld=(call.answered or {}).get("withheld", ""),
        question=getattr(call, "question", None),
    )


def whole_result(dialog: Dialog, *, call_id: int) -> str | None:
    """Everything that a call of this dialog brought; None when it is not of this dialog."""
    found = ToolCall.objects.filter(pk=call_id, message__dialog=dialog).annotate(whole=RESULT)
    return found.values_list("whole", flat=True).first()
