"""How full the next request would be, estimated, and of what. Never to be mixed with what a provider reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from dialogs import quotes
from dialogs.attachments import with_blobs
from dialogs.compacting.server_counter import server_counter
from dialogs.context import Context, Piece, system_text
from dialogs.models import LLM
from dialogs.models.message import Role
from health.compaction.ports import Counter, Grade
from health.compaction.wire import is_text
from health.models import LlmCalibration
from health.tokens.calibration import Calibrating, Calibration, Correction, RawEstimate, Uncalibrated
from health.tokens.corrected import CautiousCounter, CorrectedCounter, correction_of, likely_of, plain_of
from health.tokens.counters import counter_for
from health.tokens.families import family_of
from health.tokens.images import NO_MEDIA, Media, is_image, media_in
from health.tokens.messages import overhead_tokens, tools_tokens
from health.tokens.tools import as_sent


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """What a request is to be reckoned with, the margin in it, and the same before anything learned corrected it, as
    `counter` counted it."""

    tokens: int
    raw: RawEstimate
    margin: int = 0
    counter: str = ""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Tokens by what they are spent on; the parts add up to `tokens`. `counter` says how they were counted.

    `margin` is what is added where nobody knows how the model counts; `media` are the images, not yet corrected.
    """

    instructions: int = 0
    tools: int = 0
    taskdoc: int = 0
    reminders: int = 0
    summaries: int = 0
    messages: int = 0
    tool_results: int = 0
    margin: int = 0
    media: Media = NO_MEDIA
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

    @cached_property
    def counter(self) -> Counter:
        """Made when something is counted: it may ask the server whether that counts."""
        return counter_of(self.context.dialog.llm)

    @cached_property
    def at_most(self) -> int | None:
        """None with what bytes say nothing of: sounds, files, and images until reports have taught what they cost."""
        shown = _most_shown(self.context)
        if shown is None:
            return None
        texts = [sent_text(piece, self.context) for piece in self.context.pieces]
        besides = (system_text(self.context), self.context.task, self.context.beginning.changed)
        said = sum(len(text.encode()) + FRAME_TOKENS for text in (*texts, *besides))
        return said + shown + 2 * len(json.dumps(list(self.tools), ensure_ascii=False).encode())

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


def _most_shown(context: Context) -> int | None:
    """Twice of what the images of a context cost by their family and by the reports. None where nobody can tell yet."""
    showing = [piece for piece in context.pieces if piece.parts]
    if not showing:
        return 0
    known = calibration_of(context.dialog.llm)
    if not isinstance(known, Calibration) or not known.is_trusted or not known.has_images:
        return None
    if not all(is_text(part) or is_image(part) for piece in showing for part in piece.parts):
        return None
    media = sum((media_of(piece, context) for piece in showing), NO_MEDIA)
    return 2 * max(media.tokens, known.correction.of_images(media.tokens, media.pictures))


def calibration_of(llm: LLM) -> Calibrating:
    """What the reports taught of the counter that is used now: of another one they say nothing."""
    return _calibration(llm, _plain(llm))


def _calibration(llm: LLM, plain: Counter) -> Calibrating:
    try:
        return llm.calibration.known_of(plain.name)
    except LlmCalibration.DoesNotExist:
        return Uncalibrated()


def _plain(llm: LLM) -> Counter:
    return server_counter(llm, counter_for(llm.model_id))


def counter_of(llm: LLM) -> Counter:
    """The counter for this LLM, corrected by what its server has reported so far.

    With a margin where it does not have the model's own vocabulary, until enough reports have calibrated it.
    """
    return _corrected(llm, lambda known: known.trusted)


def counter_without_tools(llm: LLM) -> Counter:
    """The counter for a request of another kind than the dialog's, which offers no tools: corrected upwards only."""
    return _corrected(llm, lambda known: Correction(ratio=max(1.0, known.ratio)))


def _corrected(llm: LLM, correction: Callable[[Calibration], Correction]) -> Counter:
    plain = _plain(llm)
    known = _calibration(llm, plain)
    likely = CorrectedCounter(plain, correction(known)) if isinstance(known, Calibration) else plain
    is_sure = plain.grade is Grade.EXACT or (isinstance(known, Calibration) and known.is_trusted)
    return likely if is_sure else CautiousCounter(likely, plain)


def overhead(llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> int:
    """What is sent besides messages, with so much of the tools as the server is known to show the model."""
    shown = round(correction_of(counter).tools_ratio * tools_tokens(llm.model_id, tools))
    if tools and likely_of(counter) is not counter:
        shown = max(shown, *counter.count([as_sent(tools, family_of(llm.model_id).tools_as)]))
    return overhead_tokens(llm.model_id) + shown


def estimate(context: Context, tools: Sequence[Mapping[str, Any]], counter: Counter) -> Estimate:
    """The request that `context` makes now."""
    media = sum((media_of(piece, context) for piece in context.pieces), NO_MEDIA)
    likely = likely_of(counter)
    found = Estimate(**_parts(context, tools, likely), media=media, counter=counter.name, grade=counter.grade)
    if likely is counter:
        return found
    return replace(found, margin=max(0, sum(_parts(context, tools, counter).values()) - found.tokens))


def _parts(context: Context, tools: Sequence[Mapping[str, Any]], counter: Counter) -> dict[str, int]:
    pieces = context.pieces
    sizes = counter.count([sent_text(piece, context) for piece in pieces])
    spent = {"summaries": 0, "messages": 0, "tool_results": 0}
    for piece, size in zip(pieces, sizes, strict=True):
        spent[_part_of(piece)] += size + counter.per_message + media_tokens(piece, context, counter)
    taskdoc, reminders, system, task = counter.count(
        [
            context.beginning.first.taskdoc,
            "\n".join(f"{reminder.number}. {reminder.content}" for reminder in context.beginning.first.reminders),
            system_text(context),
            "\n\n".join(filter(None, (context.task, context.beginning.changed))),
        ]
    )
    spent["messages"] += task
    frame = counter.per_message if system else 0
    return {
        "instructions": max(0, system - taskdoc - reminders) + frame,
        "tools": overhead(context.dialog.llm, tools, counter),
        "taskdoc": taskdoc,
        "reminders": reminders,
        **spent,
    }


def foretold(guessed: Estimate, llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> Foretold:
    """What the report of a request so estimated is to be held against."""
    known, schemas, media = correction_of(counter), tools_tokens(llm.model_id, tools), guessed.media
    besides = guessed.margin + round(known.tools_ratio * schemas) + known.of_images(media.tokens, media.pictures)
    text = round((guessed.tokens - besides) / known.ratio)
    raw = RawEstimate(text=text, tools=schemas, images=media.tokens, pictures=media.pictures)
    return Foretold(tokens=guessed.tokens, raw=raw, margin=guessed.margin, counter=plain_of(counter).name)


def media_of(piece: Piece, context: Context) -> Media:
    """The images of one message, and what they cost by the model's family."""
    return media_in(with_blobs(piece.parts, context.blobs), context.dialog.llm.model_id)


def media_tokens(piece: Piece, context: Context, counter: Counter) -> int:
    """The same as the server's reports have corrected it."""
    media = media_of(piece, context)
    return correction_of(counter).of_images(media.tokens, media.pictures)


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
