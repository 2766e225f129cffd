"""How full the next request would be, estimated, and of what. Never to be mixed with what a provider reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from dialogs import quotes
from dialogs.context import Context, Piece, system_text
from dialogs.models import LLM
from dialogs.models.message import Role
from health.compaction.messages import IMAGE_TOKENS
from health.compaction.ports import Counter, Grade
from health.compaction.wire import media_count
from health.models import LlmCalibration
from health.tokens.calibration import Calibrating, Calibration, Correction, RawEstimate, Uncalibrated
from health.tokens.corrected import CorrectedCounter
from health.tokens.counters import counter_for
from health.tokens.messages import overhead_tokens, tools_tokens


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """What a request is likely to take, and the same before anything learned corrected it."""

    tokens: int
    raw: RawEstimate


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Tokens by what they are spent on; the parts add up to `tokens`. `counter` says how they were counted."""

    instructions: int = 0
    tools: int = 0
    taskdoc: int = 0
    reminders: int = 0
    summaries: int = 0
    messages: int = 0
    tool_results: int = 0
    counter: str = ""
    grade: str = Grade.ROUGH

    @property
    def parts(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if isinstance(value, int)}

    @property
    def tokens(self) -> int:
        return sum(self.parts.values())


# By its bytes a request is never underestimated: no token stands for less than a byte, and no template writes more
# than this around a message, or more than twice its schema for a tool.
FRAME_TOKENS = 24


@dataclass(frozen=True)
class Sizing:
    """How large the request of a context is: at most, by its bytes; and estimated, counted when that is asked for."""

    context: Context
    tools: Sequence[dict[str, Any]]
    counter: Counter

    @cached_property
    def at_most(self) -> int | None:
        """None with images, which bytes say nothing of."""
        if any(piece.parts for piece in self.context.pieces):
            return None
        texts = [sent_text(piece, self.context) for piece in self.context.pieces]
        said = sum(len(text.encode()) + FRAME_TOKENS for text in (*texts, system_text(self.context), self.context.task))
        return said + 2 * len(json.dumps(list(self.tools), ensure_ascii=False).encode())

    @cached_property
    def estimate(self) -> Estimate:
        return estimate(self.context, self.tools, self.counter)

    @cached_property
    def foretold(self) -> Foretold:
        return foretold(self.estimate, self.context.dialog.llm, self.tools, self.counter)

    @property
    def is_counted(self) -> bool:
        return "estimate" in self.__dict__

    def is_within(self, tokens: int) -> bool:
        """Is it surely no more than that? Without an estimate."""
        return self.at_most is not None and self.at_most <= tokens


def calibration_of(llm: LLM) -> Calibrating:
    try:
        return llm.calibration.known
    except LlmCalibration.DoesNotExist:
        return Uncalibrated()


def counter_of(llm: LLM) -> Counter:
    """The counter for this LLM, corrected by what its server has reported so far."""
    return _corrected(llm, lambda known: known.trusted)


def counter_without_tools(llm: LLM) -> Counter:
    """The counter for a request of another kind than the dialog's, which offers no tools: corrected upwards only."""
    return _corrected(llm, lambda known: Correction(ratio=max(1.0, known.ratio)))


def _corrected(llm: LLM, correction: Callable[[Calibration], Correction]) -> Counter:
    known, plain = calibration_of(llm), counter_for(llm.model_id)
    return CorrectedCounter(plain, correction(known)) if isinstance(known, Calibration) else plain


def overhead(llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> int:
    """What is sent besides messages, with so much of the tools as the server is known to show the model."""
    return overhead_tokens(llm.model_id) + round(_correction(counter).tools_ratio * tools_tokens(llm.model_id, tools))


def _correction(counter: Counter) -> Correction:
    return counter.correction if isinstance(counter, CorrectedCounter) else Correction()


def estimate(context: Context, tools: Sequence[Mapping[str, Any]], counter: Counter) -> Estimate:
    """The request that `context` makes now."""
    pieces = context.pieces
    sizes = counter.count([sent_text(piece, context) for piece in pieces])
    spent = {"summaries": 0, "messages": 0, "tool_results": 0}
    for piece, size in zip(pieces, sizes, strict=True):
        spent[_part_of(piece)] += size + counter.per_message + IMAGE_TOKENS * media_count({"content": piece.parts})
    taskdoc, reminders, system, task = counter.count(
        [
            context.dialog.taskdoc.strip(),
            "\n".join(f"{reminder.number}. {reminder.content}" for reminder in context.reminders),
            system_text(context),
            context.task,
        ]
    )
    spent["messages"] += task
    frame = counter.per_message if system else 0
    return Estimate(
        instructions=max(0, system - taskdoc - reminders) + frame,
        tools=overhead(context.dialog.llm, tools, counter),
        taskdoc=taskdoc,
        reminders=reminders,
        counter=counter.name,
        grade=counter.grade,
        **spent,
    )


def foretold(guessed: Estimate, llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> Foretold:
    """What the report of a request so estimated is to be held against."""
    known, schemas = _correction(counter), tools_tokens(llm.model_id, tools)
    text = (guessed.tokens - round(known.tools_ratio * schemas)) / known.ratio
    return Foretold(tokens=guessed.tokens, raw=RawEstimate(text=round(text), tools=schemas))


def sent_text(piece: Piece, context: Context) -> str:
    """All text that is sent for one message: content, calls, the notice that it carries."""
    calls = context.calls.get(piece.message.pk, ()) if piece.message else ()
    asked = [json.dumps({"name": call.name}) + (call.arguments or "{}") for call in calls]
    noticed = [context.notice] if piece.message and piece.message.pk == context.notice_on else []
    return "\n".join([piece.content, *asked, *noticed])


def _part_of(piece: Piece) -> str:
    if piece.message is None:
        return "messages" if piece.entry.kind == quotes.KIND else "summaries"
    return "tool_results" if piece.role == Role.TOOL else "messages"
