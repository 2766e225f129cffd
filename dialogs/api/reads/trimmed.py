"""Where a client that trims its own history goes on: in one stored conversation, of which it leaves out what is old.

It sends its newest messages as they stand there one after another, and before them perhaps its first ones, one of
which it may have changed, or a note that something is missing. Old results and a stopped answer may be shortened, and
old images gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import models
from django.db.models import BigIntegerField, CharField, F, IntegerField, Q, QuerySet, TextField, Value
from django.db.models.functions import StrIndex, Substr

from dialogs.api.canonical import ClientMessage, ClientRequest, canonical_again, chained_below, following
from dialogs.models import Dialog, Message, PrefixNode
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.path import course_branch
from dominds.prepared import Many, prepared

# One message alone is no history: many conversations begin with the same word.
LEAST_KNOWN = 2
# Fewer characters may be the same by chance.
LEAST_ANSWERED = 40
# Of the dialogs that begin or end alike so many are looked at, the newest first.
MOST_ALIKE = 20
# The last answer is looked for among so many times the request's messages of a dialog's newest.
REACH = 4
# So many places where it stands are looked at, the newest first.
MOST_PLACES = 3
# A client keeps so many messages in front at the most, and so much of them may be its own note.
MOST_FIRST, MOST_NOTED = 5, 500
# A stored answer without the thoughts in front and the blanks around it, which clients take away.
_BEHIND_THOUGHTS = Substr("content", StrIndex("content", Value("</think>")) + len("</think>"))
_THINKS = models.When(content__startswith="<think>", content__contains="</think>", then=_BEHIND_THOUGHTS)
_WORDS = models.Case(_THINKS, default="content", output_field=TextField())
SAID = models.Func(_WORDS, Value(" \t\r\n\f\v\xa0\u3000"), function="TRIM", output_field=TextField())


class Trimmed(NamedTuple):
    """The first `length` messages of a request end with this stored message, behind the prefix with the hash `below`.

    The client left out all up to the message number `left_out`, but for `first`: ids of messages, and a message of its
    own as it is sent. `shortened`: what it sends in place of a message's text, by the message's id. `branch` are the
    messages up to that one, where they were read.
    """

    length: int
    message_id: int
    below: str
    left_out: int
    first: tuple[Any, ...]
    shortened: Mapping[int, str]
    branch: tuple[Message, ...]


def as_sent(found: Trimmed | None) -> dict[str, Any]:
    """The columns of a client's conversation that say how it is sent."""
    if found is None:
        return {"sends_after": 0, "sends_otherwise": {}}
    otherwise = {"first": list(found.first), "shortened": sorted(found.shortened)}
    return {"sends_after": found.left_out, "sends_otherwise": {name: one for name, one in otherwise.items() if one}}


def trimmed(owner_id: int, request: ClientRequest) -> Trimmed | None:
    """The one stored conversation in which the request stands up to its last answer, and what it leaves out of it.

    None where no conversation fits, where two fit alike, and where too few words are the same to tell.
    """
    last = next((at for at, one in reversed(list(enumerate(request.messages))) if one.role == Role.ASSISTANT), 0)
    ends = _ends(owner_id, request, request.messages[last]) if last else []
    found: dict[UUID, _Aligned] = {}
    for end in ends:
        if end.dialog_id not in found and (one := _Aligned(request.messages[: last + 1], course_branch(end))).is_known:
            found[end.dialog_id] = one
    longest = [one for one in found.values() if one.length == max(each.length for each in found.values())]
    return _with_rest(owner_id, longest[0].trimmed(), request) if len(longest) == 1 else None


def _ends(owner_id: int, request: ClientRequest, answer: ClientMessage) -> list[Message]:
    """Where the answer stands near the end of a dialog, the newest first."""
    whose = (owner_id, request.model, request.chat, REACH * len(request.messages) + MOST_ALIKE)
    rows = _calling(*whose, answer.calls[0].id) if answer.calls else _saying(*whose, answer.text.strip())
    named = [row for row in rows if request.dialog_id in ("", str(row.dialog_id))]
    return sorted(named, key=attrgetter("pk"), reverse=True)[:MOST_PLACES]


@prepared(BigIntegerField(), CharField(), CharField(), IntegerField(), TextField())
def _saying(owner_id: Any, model: Any, chat: Any, reach: Any, text: Any) -> QuerySet[Message]:
    # Where it begins, for SQLite's LIKE takes 50,000 characters at the most.
    answers = _near(owner_id, model, chat, reach).alias(said=SAID, at=StrIndex("content", text))
    return answers.filter(Q(said=text) | Q(cut_short=True, at=1))


@prepared(BigIntegerField(), CharField(), CharField(), IntegerField(), CharField())
def _calling(owner_id: Any, model: Any, chat: Any, reach: Any, call_id: Any) -> QuerySet[Message]:
    return _near(owner_id, model, chat, reach).filter(calls__call_id=call_id)


def _near(owner_id: Any, model: Any, chat: Any, reach: Any) -> QuerySet[Message]:
    mine = Dialog.objects.filter(owner=owner_id, is_client_driven=True, trashed_at=None)
    newest = mine.filter(client__model=model, client__chat=chat).order_by("-active_at").values("pk")[:MOST_ALIKE]
    near = Message.objects.filter(dialog__in=newest, seq__gt=F("dialog__last_seq") - reach, role=Role.ASSISTANT)
    return near.order_by()


class _Aligned:
    """The messages of a request up to its last answer, beside a stored branch that ends with that answer.

    `begin`: from this message on both say the same, one after another, and in the branch from `place` on. Before that
    the request has its first `kept` messages as the branch has them. `answer_chars`: the characters of the answers by
    Dominds' agent among what both say.
    """

    def __init__(self, messages: Sequence[ClientMessage], branch: Sequence[Message]) -> None:
        self.messages, self.branch = messages, branch
        near = (*branch[:MOST_FIRST], *branch[-REACH * len(messages) - MOST_ALIKE :])
        self.nodes: dict[int, list[str]] = {}
        for message_id, sha256 in _nodes({one.pk for one in near}):
            self.nodes.setdefault(message_id, []).append(sha256)
        self.shortened: dict[int, str] = {}
        self.begin, self.place, self.answer_chars = len(messages), len(branch), 0
        self._go_back()
        pairs = enumerate(zip(messages[: self.begin], branch, strict=False))
        self.kept = next((at for at, (one, stored) in pairs if one.prefix not in self._hashes(stored)), self.begin)

    @property
    def length(self) -> int:
        return len(self.messages) - self.begin

    def _hashes(self, stored: Message) -> list[str]:
        return self.nodes.get(stored.pk, [])

    def _go_back(self) -> None:
        """Compare backwards while both say the same. What only the branch has, such as a `recall`, is passed over."""
        known = [at for at, stored in enumerate(self.branch) if stored.pk in self.nodes]
        while self.begin and known:
            at = known.pop()
            stored, one = self.branch[at], self.messages[self.begin - 1]
            if not self._says(stored, one, behind=self._hashes(self.branch[known[-1]]) if known else []):
                return
            self.begin, self.place = self.begin - 1, at
            if stored.origin == MessageOrigin.AGENT:
                self.answer_chars += len(one.text.strip()) + sum(len(call.id) for call in one.calls)

    def _says(self, stored: Message, one: ClientMessage, *, behind: Sequence[str]) -> bool:
        said, hashes = canonical_again(one), self._hashes(stored)
        if one.prefix in hashes or any(following(prefix, said) in hashes for prefix in behind):
            return True
        if _is_shortened(one, stored):
            self.shortened[stored.pk] = one.text
            return True
        return False

    @property
    def is_known(self) -> bool:
        """Do enough answers agree, and is what stands in front the branch's beginning, with one note at most?"""
        is_told = self.length >= LEAST_KNOWN and self.answer_chars >= LEAST_ANSWERED
        return is_told and (
            not self.begin or (self._is_beginning() and _has_our_answer(self.branch[self.kept : self.place]))
        )

    def _is_beginning(self) -> bool:
        """Is more gone than the one note replaces? Else a message was changed, and that is another branch."""
        noted, gone = self.messages[self.kept : self.begin], self.place - self.kept
        is_short = self.begin <= MOST_FIRST and len(noted) <= 1 and gone > len(noted)
        return is_short and all(_is_note(one, self.branch[self.kept]) for one in noted)

    def trimmed(self) -> Trimmed:
        end, ids = self.branch[-1], [one.pk for one in self.branch[: self.kept]]
        noted = [_as_it_came(one) for one in self.messages[self.kept : self.begin]]
        left_out = self.branch[self.place - 1].seq if self.place else 0
        below = self._hashes(end)[0]
        first = (*ids, *noted)
        return Trimmed(len(self.messages), end.pk, below, left_out, first, self.shortened, tuple(self.branch))


def _has_our_answer(gone: Sequence[Message]) -> bool:
    """Did Dominds' agent give one of these answers, here or before they were stored anew? If not, the client took out
    what it had put in itself, as aider does: that is a branch without them, not a trimmed history."""
    if any(one.origin == MessageOrigin.AGENT for one in gone):
        return True
    said = [one.content for one in gone if one.role == Role.ASSISTANT and one.content.strip()]
    made = Message.objects.filter(dialog=gone[0].dialog_id, origin=MessageOrigin.AGENT, content__in=said[:MOST_ALIKE])
    return bool(said) and made.exists()


@prepared(Many(BigIntegerField()))
def _nodes(ids: Any) -> QuerySet[PrefixNode, Any]:
    return PrefixNode.objects.filter(message__in=ids).order_by().values_list("message_id", "sha256")


def _is_shortened(one: ClientMessage, stored: Message) -> bool:
    """A result of the same call in half of the words or fewer, as much of a stopped answer as the client got, or a
    message without its images. A result that says as much in other words is another one."""
    if one.role != stored.role or "content" in one.wire:
        return False
    if stored.cut_short:
        return bool(one.text) and stored.content.startswith(one.text)
    if one.role == Role.TOOL:
        return one.tool_call_id == stored.parts.get("tool_call_id") and len(one.text) <= len(stored.content) / 2
    has_media = "content" in stored.parts.get("wire", {})
    return has_media and one.role == Role.USER and one.text.strip() == stored.content.strip()


def _is_note(one: ClientMessage, stored: Message) -> bool:
    """A few words of the client's own, or a message of the conversation's with them."""
    said = one.text.replace(stored.content.strip(), "", 1) if stored.content.strip() else one.text
    is_text = one.role != Role.TOOL and not one.calls and "content" not in one.wire
    return is_text and len(said) <= MOST_NOTED


def _as_it_came(one: ClientMessage) -> dict[str, Any]:
    return {"role": one.role, "content": one.text, **({"parts": {"wire": dict(one.wire)}} if one.wire else {})}


def _with_rest(owner_id: int, found: Trimmed, request: ClientRequest) -> Trimmed:
    """Extended by the messages behind the last answer that are stored too, as in a request that is sent again."""
    rest = list(chained_below(request.messages[found.length :], found.below))
    rows = _behind(owner_id, [one.prefix for one in rest], found.message_id) if rest else []
    there: dict[str, int] = dict(rows)
    for one in takewhile(lambda one: one.prefix in there, rest):
        found = found._replace(length=found.length + 1, message_id=there[one.prefix], below=one.prefix, branch=())
    return found


@prepared(BigIntegerField(), Many(CharField()), BigIntegerField())
def _behind(owner_id: Any, hashes: Any, message_id: Any) -> QuerySet[PrefixNode, Any]:
    same = Message.objects.filter(pk=message_id).values("dialog")
    rows = PrefixNode.objects.filter(owner=owner_id, sha256__in=hashes, message__dialog__in=same)
    return rows.order_by("message_id").values_list("sha256", "message_id")
