"""Estimates the tokens of the request that a dialog would make now, and of its parts; and the sizes of its course for a
replay. Never mix these with the usage that a provider reports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils.functional import cached_property

from dialogs.agents.tools.base import wire
from dialogs.agents.tools.registry import tools_for
from dialogs.context.border import Context, read_context, read_seen, said_below, system_text
from dialogs.llms.counter import calibration_of, counter_of
from dialogs.llms.guard import Guard
from dialogs.models import LLM, Dialog, Message
from dialogs.models.message import Role
from dialogs.providers.laws import is_merged
from dialogs.transcript import model_view
from dialogs.transcript.attachments import with_blobs
from dialogs.transcript.model_view import Entry, Piece
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.reads.tool_calls import calls_by_message
from health.compaction.terms.ports import Counter, Grade
from health.compaction.terms.wire import is_text
from health.critic.replay import Growth
from health.tokens.calibration import Calibration, RawEstimate
from health.tokens.corrected import MARGIN, correction_of, likely_of, plain_of
from health.tokens.families import family_of
from health.tokens.images import NO_MEDIA, Media, is_image, media_in
from health.tokens.messages import as_sent, overhead_tokens, tools_tokens


@dataclass(frozen=True, kw_only=True)
class RequestEstimate:
    """The estimate of one request: `tokens` with the `margin`, and `raw` as counted, not corrected by any report."""

    tokens: int
    raw: RawEstimate
    margin: int = 0
    counter: str = ""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Tokens by part; the parts add up to `tokens`. `counter` says how they were counted.

    `margin` is added if it is unknown how the model counts; `media` are the images, not yet corrected by reports.
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


# The bytes are an upper bound of a request's tokens: no token is shorter than a byte, and no template adds more than
# this to a message, or writes a tool in more than twice its schema.
FRAME_TOKENS = 24
# What stands between two texts that are sent as one message.
BREAK_TOKENS = 1
# The attribute of a Context that caches its sizes.
SAID_BYTES = "said_bytes"
# How much too low an estimate may be when the answer gets what is left of the window: a share of it, but at least what
# a template may add to a short request.
UNSURE_SHARE, UNSURE_TOKENS = 0.03, 64
# If it is unknown how the model counts, a prompt of prose may take this many times its likely tokens.
UNKNOWN_FACTOR = 1.5


@dataclass(frozen=True)
class Sizing:
    """The size of a context's request: `at_most` by its bytes, and the `estimate`, counted on first use."""

    context: Context
    tools: Sequence[dict[str, Any]]
    # An earlier estimate of the same context, if there is one: then `estimate` is not counted again.
    known: Estimate | None = None

    @cached_property
    def counter(self) -> Counter:
        """Made on first use: it may ask whether the server counts tokens."""
        return counter_of(self.context.dialog.llm)

    @cached_property
    def at_most(self) -> int | None:
        """None if bytes do not tell: with sounds, files, and images until reports have shown what they cost."""
        shown = _images_at_most(self.context)
        if shown is None:
            return None
        besides = (system_text(self.context), self.context.task, self.context.beginning.changed)
        said = said_bytes(self.context) + sum(len(text.encode()) for text in besides)
        said += FRAME_TOKENS * (len(self.context.pieces) + len(besides))
        return said + shown + 2 * len(json.dumps(list(self.tools), ensure_ascii=False).encode())

    @cached_property
    def estimate(self) -> Estimate:
        return self.known or estimate(self.context, self.tools, self.counter)

    @cached_property
    def request_estimate(self) -> RequestEstimate:
        return estimate_of(self.estimate, self.context.dialog.llm, self.tools, self.counter)

    @property
    def is_counted(self) -> bool:
        return "estimate" in self.__dict__

    @property
    def has_request_estimate(self) -> bool:
        return "request_estimate" in self.__dict__

    def to_send(self) -> Sizing:
        """The sizing of the request that is sent. Calibration needs its own count, so `is_counted` begins as False."""
        again = replace(self, known=self.__dict__.get("estimate"))
        if "counter" in self.__dict__:
            again.__dict__["counter"] = self.counter
        return again.as_large_as(self)

    def as_large_as(self, other: Sizing) -> Sizing:
        """Take `at_most` from the sizing of the same request, if it has it."""
        if "at_most" in other.__dict__:
            self.__dict__["at_most"] = other.at_most
        return self

    def is_within(self, tokens: int) -> bool:
        """Is it certain by the bytes, without counting, that the request has at most this many tokens?"""
        return self.at_most is not None and self.at_most <= tokens


def beside_an_answer(tokens: int, *, margin: int) -> int:
    """The most tokens that a prompt with this estimate (with margin) may take: the answer gets the rest of the window.

    High rather than low: a slightly shorter answer costs nothing.
    """
    unknown = round(UNKNOWN_FACTOR * (tokens - margin)) if margin else 0
    return max(unknown, tokens + max(UNSURE_TOKENS, round(UNSURE_SHARE * tokens)))


def surely_within(room: int, counter: Counter) -> int:
    """The largest estimate of a prompt that takes no more than `room` in the worst case.

    For prompts that are not measured again before they are sent, and not compacted after a refusal.
    """
    unknown = UNKNOWN_FACTOR / MARGIN if likely_of(counter) is not counter else 1.0
    return min(room - UNSURE_TOKENS, int(room / max(unknown, 1 + UNSURE_SHARE)))


def _images_at_most(context: Context) -> int | None:
    """Twice the cost of the context's images by family and reports. None if it is not known yet."""
    showing = [one for one in context.pieces if one.message and one.message.parts and one.parts]
    if not showing:
        return 0
    known = calibration_of(context.dialog.llm)
    if not isinstance(known, Calibration) or not known.is_trusted or not known.has_images:
        return None
    if not all(is_text(part) or is_image(part) for piece in showing for part in piece.parts):
        return None
    media = sum((media_of(piece, context) for piece in showing), NO_MEDIA)
    return 2 * max(media.tokens, known.correction.of_images(media.tokens, media.pictures))


def overhead(llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> int:
    """Tokens besides messages, with as much of the tools as the server is known to show the model."""
    shown = round(correction_of(counter).tools_ratio * tools_tokens(llm.model_id, tools))
    if tools and likely_of(counter) is not counter:
        shown = max(shown, *counter.count([as_sent(tools, family_of(llm.model_id).tools_as)]))
    return overhead_tokens(llm.model_id) + shown


def estimate(context: Context, tools: Sequence[Mapping[str, Any]], counter: Counter) -> Estimate:
    """The estimate of the request that `context` makes now."""
    said = [CountedText(sent_text(one, context), _part_of(one), media_of(one, context)) for one in context.pieces]
    media = sum((one.media for one in said if one.media is not NO_MEDIA), NO_MEDIA)
    likely = likely_of(counter)
    found = Estimate(**_parts(said, context, tools, likely), media=media, counter=counter.name, grade=counter.grade)
    if likely is counter:
        return found
    return replace(found, margin=max(0, sum(_parts(said, context, tools, counter).values()) - found.tokens))


class CountedText(NamedTuple):
    """A text to count, and the part of the budget it belongs to. A tuple, as there are hundreds."""

    text: str
    part: str
    media: Media


def _parts(
    said: Sequence[CountedText], context: Context, tools: Sequence[Mapping[str, Any]], counter: Counter
) -> dict[str, int]:
    sizes, frame = counter.count([one.text for one in said]), counter.per_message
    spent = {"summaries": 0, "messages": 0, "tool_results": 0}
    for one, size in zip(said, sizes, strict=True):
        spent[one.part] += size + frame + (0 if one.media is NO_MEDIA else _corrected(one.media, counter))
    taskdoc, reminders, system, task = counter.count(
        [
            context.beginning.first.taskdoc,
            "\n".join(f"{reminder.number}. {reminder.text}" for reminder in context.beginning.first.reminders),
            system_text(context),
            "\n\n".join(filter(None, (context.task, context.beginning.changed))),
        ]
    )
    spent["messages"] = max(0, spent["messages"] + task - _joined(context) * (frame - BREAK_TOKENS))
    return {
        "instructions": max(0, system - taskdoc - reminders) + (frame if system else 0),
        "tools": overhead(context.dialog.llm, tools, counter),
        "taskdoc": taskdoc,
        "reminders": reminders,
        **spent,
    }


def _joined(context: Context) -> int:
    """How many texts are sent in one message with the one before, and so have no frame of their own."""
    if context.client is not None and context.run_id is None:
        return 0
    merged = sum(is_merged(message, before) for before, message in pairwise(context.said))
    return len(context.pieces) - len(context.said) + merged


def estimate_of(guessed: Estimate, llm: LLM, tools: Sequence[Mapping[str, Any]], counter: Counter) -> RequestEstimate:
    """The estimate that the provider's report of this request is compared with."""
    known, schemas, media = correction_of(counter), tools_tokens(llm.model_id, tools), guessed.media
    besides = guessed.margin + round(known.tools_ratio * schemas) + known.of_images(media.tokens, media.pictures)
    text = round((guessed.tokens - besides) / known.ratio)
    raw = RawEstimate(text=text, tools=schemas, images=media.tokens, pictures=media.pictures)
    return RequestEstimate(tokens=guessed.tokens, raw=raw, margin=guessed.margin, counter=plain_of(counter).name)


def media_of(piece: Piece, context: Context) -> Media:
    """The images of one message, with their tokens by the model's family."""
    parts = piece.parts
    return media_in(with_blobs(parts, context.blobs), context.dialog.llm.model_id) if parts else NO_MEDIA


def media_tokens(piece: Piece, context: Context, counter: Counter) -> int:
    """The tokens of a piece's images and files, corrected by the server's reports."""
    media = media_of(piece, context)
    return 0 if media is NO_MEDIA else _corrected(media, counter)


def _corrected(media: Media, counter: Counter) -> int:
    return correction_of(counter).of_images(media.tokens, media.pictures)


def sent_text(piece: Piece, context: Context) -> str:
    """All text that is sent for one message: content, calls, and what Dominds adds below."""
    message = piece.message
    if message is None:
        return piece.content
    asked = [json.dumps({"name": call.name}) + (call.arguments or "{}") for call in context.calls.get(message.id, ())]
    return "\n".join([piece.content, *asked, *said_below(message, context)])


def said_bytes(context: Context) -> int:
    """The bytes of all texts of the context. Computed once."""
    known = context.__dict__
    if SAID_BYTES not in known:
        known[SAID_BYTES] = sum(len(sent_text(piece, context).encode()) for piece in context.pieces)
    return int(known[SAID_BYTES])


def _part_of(piece: Piece) -> str:
    if piece.message is None:
        return "messages" if piece.entry.kind == model_view.KIND else "summaries"
    return "tool_results" if piece.message.role == Role.TOOL else "messages"


Branch = tuple[Message, ...]


def present_context(dialog: Dialog, guard: Guard | None = None, branch: Branch | None = None) -> Context:
    """The context with the whole course, also what the model does not see. `branch`: the shown one, if already read."""
    return read_context(dialog, course_branch(dialog.current_leaf) if branch is None else branch, guard)


def next_context(dialog: Dialog, guard: Guard | None = None, branch: Branch | None = None) -> Context:
    """The context of the next request; of the course it has only the view, if there is one."""
    return read_seen(dialog, guard) or present_context(dialog, guard, branch)


def as_stored(context: Context, dialog: Dialog, branch: Sequence[Message]) -> Context:
    """A client's context after its newest messages were stored, so that they and their calls have ids.

    Only for a context without a view whose pieces are already computed.
    """
    ids = [message.id for message in branch if message.role == Role.ASSISTANT]
    calls = calls_by_message(ids) if context.calls else {}
    found = replace(context, dialog=dialog, branch=tuple(branch), calls=calls, client=dialog.client)
    now = {before.id: message for before, message in zip(context.branch, branch, strict=True)}
    pieces = (_of(piece, now[piece.message.id]) for piece in context.pieces if piece.message)
    return with_cached(found, pieces=tuple(pieces), said=context.said, said_bytes=said_bytes(context))


def _of(piece: Piece, message: Message) -> Piece:
    return piece if piece.message is message else Piece(Entry(message_id=message.id), message)


def extended(before: Context, now: Context) -> Context:
    """`now` with the cached values of `before`, whose branch is the beginning of its own. Only for a client's
    conversation that is sent whole and unchanged."""
    added = now.branch[len(before.branch) :]
    rest = with_cached(replace(now), pieces=tuple(Piece(Entry(message_id=one.id), one) for one in added))
    return with_cached(
        now,
        pieces=(*before.pieces, *rest.pieces),
        said=(*before.said, *rest.said),
        said_bytes=said_bytes(before) + said_bytes(rest),
    )


def with_cached(context: Context, **values: Any) -> Context:
    """The context with these cached properties filled in."""
    context.__dict__.update(values)
    return context


def offered_tools(dialog: Dialog, *, compacted: bool | None = None) -> list[dict[str, Any]]:
    """A request's tools: a client's own, then Dominds's. `compacted`: as after a compaction, which adds one."""
    theirs = list(dialog.client.tools) if dialog.is_client_driven else []
    return theirs + [wire(tool) for tool in tools_for(dialog, compacted=compacted)]


def present_tokens(dialog: Dialog) -> int:
    return estimate(next_context(dialog), offered_tools(dialog), counter_of(dialog.llm)).tokens


def growth_of(dialog: Dialog, *, reserve: int) -> Growth:
    """The sizes of the uncompacted course: its compactions were made under other settings."""
    context = read_context(dialog, course_branch(dialog.current_leaf)).whole()
    counter = counter_of(dialog.llm)
    without = estimate(replace(context, view=()), offered_tools(dialog), counter)
    pieces = context.pieces
    sizes = counter.count([sent_text(piece, context) for piece in pieces])
    return Growth(
        base=without.tokens + reserve,
        sizes=tuple(
            size + counter.per_message + media_tokens(piece, context, counter)
            for piece, size in zip(pieces, sizes, strict=True)
        ),
        asks=tuple(piece.role is not Role.ASSISTANT for piece in pieces),
        reserve=reserve,
    )
