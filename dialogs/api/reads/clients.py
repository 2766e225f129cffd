"""Where a client's history is known already: the longest prefix of it that is stored, and in which dialog.

A prefix that holds an answer of ours, or a message that we were asked to answer, is this conversation's. One that was
only brought along may be the client's frame, such as example turns, with which all of its conversations begin: then
the conversation is known by our answers in the rest of the history, and without any it is another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import BigIntegerField, CharField, F, IntegerField, Q, QuerySet, UUIDField

from dialogs.api.canonical import ClientCall, ClientMessage, ClientRequest
from dialogs.api.reads.trimmed import LEAST_ANSWERED, LEAST_KNOWN, MOST_ALIKE, SAID, Trimmed, trimmed
from dialogs.models import ApiKey, Dialog, Generation, Message, PrefixNode, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.turns.reads.turns import LARGE
from dominds.prepared import Many, prepared

# Hashes looked for in one query.
AT_ONCE = 200
# As many as a request brings along at the most, if it goes on with what is stored.
NEWEST = 16
# No client puts more than so many messages before each conversation: a longer history was brought along by somebody.
MOST_FRAMED = 30
# So many other conversations that begin alike are no chance.
SEVERAL = 2
# Who asks for a summary and then begins with it has put it in place of the history.
ASKS_FOR_SUMMARY = re.compile(r"summar|compact|condense|总结|摘要|概括|压缩", re.IGNORECASE)
# Such a request has few messages, and begins with so many characters at least.
MOST_SUMMARISED, LEAST_SUMMARISED = 4, 200
# Answers of ours are looked for among so many of a history's first, and so many of its newest.
MOST_ANSWERS = 50
# In a system text: what changes while the conversation stays the same.
VOLATILE = re.compile(
    r"\d+|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b[ap]m\b|\b(?:jan|febr)uary\b|\bmarch\b|\bapril\b|\bmay\b"
    r"|\bju(?:ne|ly)\b|\baugust\b|\b(?:septem|octo|novem|decem)ber\b|\s+",
    re.IGNORECASE,
)


class KnownPrefix(NamedTuple):
    """The first `length` messages of a request end with a stored message, in each of these dialogs, newest first.

    None of them is stored where `length` is 0: then a message, if any, is of the dialog whose history was replaced.
    The first `frame` messages stand before other conversations too, so none of them asks for this one. Where the
    client has made its request up anew since, they are its own, nobody's words.

    `trimmed`: how the client left out or shortened what is old, where it did.
    """

    length: int
    messages: tuple[Message, ...]
    frame: int = 0
    trimmed: Trimmed | None = None


class PrefixEnd(NamedTuple):
    """A stored message that ends a prefix; `chat` is the client's name of its conversation."""

    message_id: int
    dialog_id: UUID
    origin: str
    chat: str


# Of the view that holds: what no request is made of.
NOT_SENT = tuple(f"course__head_run__{name}" for name in LARGE if name != "view")
# By the hash of a prefix, newest first.
PrefixEnds = dict[str, list[PrefixEnd]]


def longest_known(*, owner: User, request: ClientRequest) -> KnownPrefix:
    if not may_be_known(request):
        summarised = _summarised(owner, request)
        return KnownPrefix(0, _leaf(summarised) if summarised else ())
    for start, end in _spans(len(request.messages)):
        places = _places(owner, request.messages[start:end], request.dialog_id)
        for length in range(end, start, -1):
            meant = [place for place in _at(places, request, length) if _is_meant(place.chat, request, length)]
            if meant:
                has_answers = any(one.role == Role.ASSISTANT for one in request.messages[length:])
                if has_answers and (known := _trimmed(owner, request)):
                    return known
                found = meant if length > MOST_FRAMED else _settled(meant, places, request, length)
                return (
                    KnownPrefix(length, _messages(found, request)) if found else _begun_alike(places, request, length)
                )
    return _trimmed(owner, request) or _replaced(owner, request)


def may_be_known(request: ClientRequest) -> bool:
    """Is there more than one message, or a name for the conversation?"""
    return len(request.messages) >= LEAST_KNOWN or bool(request.chat or request.dialog_id)


def _spans(length: int) -> Iterator[tuple[int, int]]:
    """Where known prefixes are looked for, one after another. A long history grows at its end, so that comes first; and
    what is short enough for a client's frame is looked at whole."""
    end = length
    if length > MOST_FRAMED + NEWEST:
        end = length - NEWEST
        yield end, length
    while end > 0:
        start = end - AT_ONCE if end - AT_ONCE > MOST_FRAMED else 0
        yield start, end
        end = start


def _trimmed(owner: User, request: ClientRequest) -> KnownPrefix | None:
    """A client that leaves out or shortens what is old, where its instructions begin as those of the conversation."""
    found = trimmed(owner.pk, request)
    last = _message(found.message_id) if found else []
    is_same = bool(last) and _begins_same_instruction(last[0].dialog.client.instructions, request)
    return KnownPrefix(found.length, tuple(last), trimmed=found) if found and is_same else None


def _replaced(owner: User, request: ClientRequest) -> KnownPrefix:
    """A client that compacts its own history sends a summary, and behind it what we had answered lately.

    Or nothing but the summary, where it had asked us for it.
    """
    dialogs = Dialog.objects.filter(owner=owner, is_client_driven=True, trashed_at=None, client__model=request.model)
    if request.dialog_id:
        return KnownPrefix(0, _leaf(UUID(request.dialog_id)))
    if summarised := _summarised(owner, request):
        return KnownPrefix(0, _leaf(summarised))
    if not any(message.role == Role.ASSISTANT for message in request.messages):
        return KnownPrefix(0, ())
    newest = dialogs.filter(client__chat=request.chat).select_related("client").order_by("-active_at")[:MOST_ALIKE]
    alike = [one.pk for one in newest if _begins_same_instruction(one.client.instructions, request)]
    answers = _answers_of_ours(alike, request) if alike else {}
    said = {dialog: sum(found.values()) for dialog, found in answers.items()}
    best = max(said, key=lambda dialog: said[dialog], default=None)
    return KnownPrefix(0, _leaf(best) if best and said[best] >= LEAST_ANSWERED else ())


def _summarised(owner: User, request: ClientRequest) -> UUID | None:
    """The dialog whose newest answer is a summary that was asked for, and with which the request begins."""
    begins = "\n".join(one.text for one in request.messages[:LEAST_KNOWN])
    if len(request.messages) > MOST_SUMMARISED or len(begins) < LEAST_SUMMARISED:
        return None
    clients = Q(dialog__client__model=request.model, dialog__client__chat=request.chat, dialog__trashed_at=None)
    leaves = Message.objects.filter(clients, pk=F("dialog__current_leaf"), origin=MessageOrigin.AGENT)
    newest = leaves.filter(dialog__owner=owner, dialog__is_client_driven=True).order_by("-dialog__active_at")
    rows = newest.annotate(said=SAID).values_list("dialog", "said", "parent__content")
    for dialog, said, asked in rows[:MOST_ALIKE]:
        if len(said) >= LEAST_ANSWERED and said in begins and ASKS_FOR_SUMMARY.search(asked or ""):
            return dialog
    return None


def _leaf(dialog_id: UUID) -> tuple[Message, ...]:
    rows = Message.objects.select_related("dialog__client", "course").filter(dialog=dialog_id)
    return tuple(rows.order_by("-seq")[:1])


def _at(places: PrefixEnds, request: ClientRequest, length: int) -> list[PrefixEnd]:
    return places.get(request.messages[length - 1].prefix, [])


def _places(owner: User, messages: Sequence[ClientMessage], dialog_id: str) -> PrefixEnds:
    rows = _nodes(owner.pk, [message.prefix for message in messages])
    found: PrefixEnds = {}
    for sha256, *place in sorted(rows, key=itemgetter(1), reverse=True):
        found.setdefault(sha256, []).append(PrefixEnd(*place))
    if dialog_id:
        found = {one: [place for place in found[one] if place.dialog_id == UUID(dialog_id)] for one in found}
    return found


@prepared(BigIntegerField(), Many(CharField()))
def _nodes(owner_id: Any, hashes: Any) -> QuerySet[PrefixNode, Any]:
    rows = PrefixNode.objects.filter(owner=owner_id, sha256__in=hashes, message__dialog__trashed_at=None)
    place = ("message_id", "message__dialog_id", "message__origin", "message__dialog__client__chat")
    return rows.order_by().values_list("sha256", *place)


def _messages(places: Iterable[PrefixEnd], request: ClientRequest) -> tuple[Message, ...]:
    """The newest first; before them those whose instructions are the request's."""
    ids = {place.message_id for place in places}
    rows = _message(*ids) if len(ids) == 1 else sorted(_those(ids), key=attrgetter("id"), reverse=True)
    return tuple(sorted(rows, key=lambda row: not is_same_instruction(row.dialog.client.instructions, request)))


@prepared(BigIntegerField())
def _message(message_id: Any) -> QuerySet[Message]:
    rows = Message.objects.select_related("dialog__client", "course__head_run").defer(*NOT_SENT)
    return rows.filter(pk=message_id).order_by()


def as_it_is(message: Message, row: Dialog) -> Message:
    """The message, found a moment ago, beside its dialog as it is now that `row` is locked: others wrote until then."""
    return message if message.dialog.version == row.version else _message(message.pk)[0]


@prepared(Many(BigIntegerField()))
def _those(ids: Any) -> QuerySet[Message]:
    """There may be hundreds: the views that hold in them are long, and one of them at most is wanted."""
    return Message.objects.select_related("dialog__client", "course").filter(pk__in=ids).order_by()


def is_same_instruction(before: str, request: ClientRequest) -> bool:
    """But for times, dates and numbers."""
    return before == request.instructions or VOLATILE.sub("", before) == VOLATILE.sub("", request.instructions)


def _begins_same_instruction(before: str, request: ClientRequest) -> bool:
    """The same instructions, perhaps with a note of the client's own behind them: that messages are gone, or what they
    said. Their first line tells."""
    lines = (VOLATILE.sub("", text.split("\n")[0]) for text in (before, request.instructions))
    return not before or len(set(lines)) == 1


def _is_meant(chat: str, request: ClientRequest, length: int) -> bool:
    """Another chat of the same client is another dialog, however alike they begin."""
    if request.dialog_id:
        return True
    if chat and request.chat:
        return chat == request.chat
    return length >= LEAST_KNOWN


def _settled(meant: Iterable[PrefixEnd], places: PrefixEnds, request: ClientRequest, length: int) -> list[PrefixEnd]:
    """Those of dialogs that are named, or that say by the prefix itself that they are this conversation."""
    before = [place for at in range(1, length + 1) for place in _at(places, request, at)]
    ours = {place.dialog_id for place in before if place.origin == MessageOrigin.AGENT}
    named = [place for place in meant if request.dialog_id or (place.chat and place.chat == request.chat)]
    found = named + [place for place in meant if place.dialog_id in ours and place not in named]
    return found or _asked(meant, [place.message_id for place in before], request)


def _asked(meant: Iterable[PrefixEnd], branch: Sequence[int], request: ClientRequest) -> list[PrefixEnd]:
    """Those of dialogs in which we were asked to answer a message of the prefix, with the same instructions."""
    asked = Generation.objects.filter(prompt_leaf__in=branch).select_related("dialog__client")
    same = {one.dialog_id for one in asked if is_same_instruction(one.dialog.client.instructions, request)}
    return [place for place in meant if place.dialog_id in same]


def _begun_alike(places: PrefixEnds, request: ClientRequest, longest: int) -> KnownPrefix:
    """None of the prefixes holds anything of ours: where the rest of the history does, else nowhere."""
    alike: dict[UUID, tuple[int, PrefixEnd]] = {}
    for length in range(longest, LEAST_KNOWN - 1, -1):
        for place in _at(places, request, length):
            if _is_meant(place.chat, request, length):
                alike.setdefault(place.dialog_id, (length, place))
    likeliest = sorted(alike, key=lambda dialog: (alike[dialog][0], alike[dialog][1].message_id), reverse=True)
    answers = _answers_of_ours(likeliest[:MOST_ALIKE], request)
    if answers:
        dialog = max(answers, key=lambda one: (sum(answers[one].values()), alike[one][1].message_id))
        length, place = alike[dialog]
        is_made_anew = _has_more(request, length, answers[dialog]) and _has_moved_on(place)
        frame = _frame(request, min(*answers[dialog], _first_asked(place, request))) if is_made_anew else 0
        return KnownPrefix(length, _messages([place], request), frame)
    return KnownPrefix(0, (), _frame(request, longest) if _is_frame(request, longest, conversations=len(alike)) else 0)


def _answers_of_ours(dialogs: Sequence[UUID], request: ClientRequest) -> dict[UUID, dict[int, int]]:
    """By dialog: where in the request an answer stands that we made there, and how long it is."""
    said = [(at, one) for at, one in enumerate(request.messages) if one.role == Role.ASSISTANT]
    said = said if len(said) <= 2 * MOST_ANSWERS else said[:MOST_ANSWERS] + said[-MOST_ANSWERS:]
    texts = {one.text.strip(): at for at, one in reversed(said) if one.text.strip()}
    call_ids = {call.id: at for at, one in reversed(said) for call in one.calls if call.id}
    made = Message.objects.filter(dialog__in=dialogs, origin=MessageOrigin.AGENT)
    found: dict[UUID, dict[int, int]] = {}
    for dialog, text in made.annotate(said=SAID).filter(said__in=texts).values_list("dialog", "said"):
        found.setdefault(dialog, {})[texts[text]] = len(text)
    calls = ToolCall.objects.filter(message__in=made, call_id__in=call_ids)
    for dialog, call_id in calls.values_list("message__dialog", "call_id") if call_ids else ():
        found.setdefault(dialog, {})[call_ids[call_id]] = len(call_id)
    return found


def _has_more(request: ClientRequest, length: int, ours: Collection[int]) -> bool:
    """Answers that are not ours stand behind so many messages: a client that only leaves messages out puts none there,
    and what it has in front may be a person's history."""
    rest = enumerate(request.messages[length:], length)
    return any(one.role == Role.ASSISTANT and at not in ours for at, one in rest)


def _has_moved_on(place: PrefixEnd) -> bool:
    """What the client had put behind this prefix, a message with an answer that is not ours, stands there no more.

    So it makes its requests up anew each time, and what it leaves in front is no history of a person's.
    """
    gone = Message.objects.filter(parent__parent=place.message_id, parent__role=Role.USER, role=Role.ASSISTANT)
    return gone.filter(origin=MessageOrigin.CLIENT).exists()


def _first_asked(place: PrefixEnd, request: ClientRequest) -> int:
    """Where the request has what we were asked first in this dialog; its end, where it has that no more.

    While that was the newest message a client may have written more below it than it sends later.
    """
    first = Generation.objects.filter(dialog=place.dialog_id).order_by("pk").select_related("prompt_leaf").first()
    asked = first.prompt_leaf if first else None
    while asked is not None and asked.role != Role.USER:
        asked = asked.parent
    said = asked.content.strip() if asked else ""
    texts = (one.text.strip() if one.role == Role.USER else "" for one in request.messages)
    return next((at for at, text in enumerate(texts) if text and said.startswith(text)), len(request.messages))


def _is_frame(request: ClientRequest, length: int, *, conversations: int) -> bool:
    """Several conversations begin so; or one, and the client has put more of its own behind that."""
    more = any(one.role == Role.ASSISTANT for one in request.messages[length:])
    return conversations >= SEVERAL or more


def _frame(request: ClientRequest, length: int) -> int:
    """Of so many messages those up to the last that is answered: what follows is asked by somebody."""
    length = min(length, MOST_FRAMED)
    rest = takewhile(lambda one: one.role != Role.ASSISTANT, reversed(request.messages[:length]))
    framed = length - len(list(rest))
    return framed if any(one.role == Role.USER for one in request.messages[framed:]) else 0


def is_past_compacting(message: Message) -> bool:
    """Is the answer to it being written? Until then a compaction may be made, from which another request can gain."""
    running = Generation.objects.filter(prompt_leaf__dialog=message.dialog_id, status=Generation.Status.RUNNING)
    return running.exists()


def is_clients_dialog(*, key: ApiKey, dialog_id: str) -> bool:
    """Is this the id of a client-driven dialog of the key's owner? Of a key that may only chat: of one of its own."""
    try:
        wanted = UUID(dialog_id)
    except ValueError:
        return False
    found = Dialog.objects.filter(pk=wanted, owner=key.owner, is_client_driven=True, trashed_at=None)
    return (found.filter(client__api_key=key) if key.scope == ApiKey.Scope.CHAT_ONLY else found).exists()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a client's turn ended: its last generation, and the calls that are the client's to make."""

    generation: Generation | None
    calls: tuple[ClientCall, ...] = ()
    generations: int = 0
    level: str = ""


def outcome_of(leaf: Message) -> Outcome:
    """`leaf` is the newest message of the request: what came after it was made for this request."""
    made = _generations(leaf.dialog_id, leaf.turn, leaf.seq)
    if not made:
        return Outcome(generation=None)
    last = max(made, key=attrgetter("pk"))
    return outcome_with(last, generations=len(made), has_calls=last.message_id is not None)


def outcome_with(last: Generation, *, generations: int, has_calls: bool) -> Outcome:
    """The outcome of a turn of so many generations, of which this is the last."""
    asked = _clients_calls(last.message_id) if has_calls else ()
    calls = tuple(ClientCall(id=call.call_id, name=call.name, arguments=call.arguments) for call in asked)
    reading = getattr(last, "reading", None)
    return Outcome(generation=last, calls=calls, generations=generations, level=reading.level if reading else "")


@prepared(UUIDField(), IntegerField(), IntegerField())
def _generations(dialog_id: Any, turn: Any, seq: Any) -> QuerySet[Generation]:
    rows = Generation.objects.filter(dialog=dialog_id, turn=turn, prompt_leaf__seq__gte=seq)
    return rows.select_related("reading", "message").order_by()


@prepared(BigIntegerField())
def _clients_calls(message_id: Any) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(message=message_id, status=ToolCall.Status.CLIENT).order_by("position")
