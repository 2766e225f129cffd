"""Questions about a conversation whose answers are known to stand in it: what a stated task must find.

Of generated chats each fact is asked for by the name that its writer gave it; of recorded corrections each value by
what it is said of; of other recordings a later turn of the user's is the question, and what it and its answer mention
of what was said before is what must be found.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Any

from benchmarks.devset import cases
from benchmarks.devsets.case import Message
from benchmarks.facts import surroundings, text_of
from benchmarks.recordings import Conversation, Moment, cuts, used

# Questions about one conversation, and of a recording's later turns.
MOST_ASKED, MOST_TURNS = 5, 2
LONGEST_QUESTION = 600


def of_made_chats(seed: int, count: int, chars: int) -> Iterator[Moment]:
    for case in cases("chat", seed, count, chars=chars):
        told = [item for item in case.needed if item.about]
        for number, item in enumerate(_some(told, case.id)):
            yield Moment(
                id=f"{case.id}?{number}",
                kind="questions, made chats",
                conversation=case.id,
                messages=case.messages,
                told=[part.text for part in item.parts],
                question=item.about,
            )


def of_conversation(conversation: Conversation) -> Iterator[Moment]:
    if conversation.probes:
        yield from _of_values(conversation)
        return
    for share, at in cuts(conversation.messages):
        asked = (_of_turn(conversation, at, turn) for turn in _later_turns(conversation.messages, at))
        for number, moment in enumerate(islice((one for one in asked if one.future), MOST_TURNS)):
            yield replace(moment, id=f"{conversation.id}@{share}?{number}")


def _of_values(conversation: Conversation) -> Iterator[Moment]:
    """What a value is said of, without the value."""
    for number, probe in enumerate(_some(conversation.probes["must_stand"], conversation.id)):
        yield Moment(
            id=f"{conversation.id}?{number}",
            kind=f"questions, {conversation.kind}",
            conversation=conversation.id,
            messages=conversation.messages,
            probes={"must_stand": [probe], "updates": [], "retold": []},
            question=" ".join(probe[:-1]),
        )


def _later_turns(messages: Sequence[Message], at: int) -> Iterator[int]:
    for place in range(at, len(messages)):
        if messages[place]["role"] == "user" and len(text_of(messages[place])) <= LONGEST_QUESTION:
            yield place


def _of_turn(conversation: Conversation, at: int, asked: int) -> Moment:
    past, turn = conversation.messages[:at], conversation.messages[asked]
    behind = conversation.messages[asked + 1 :]
    answer = takewhile(lambda message: message["role"] != "user", behind)
    wanted = used(past, [{"role": "assistant", "content": text_of(turn)}, *answer])
    body = "\n".join(text_of(message) for message in past if message["role"] != "system")
    return Moment(
        id="",
        kind=f"questions, {conversation.kind}",
        conversation=conversation.id,
        messages=past,
        future={fact: surroundings(fact, body) for fact in wanted},
        question=text_of(turn),
    )


def _some(items: Sequence[Any], name: str) -> list[Any]:
    """A few of them, the same ones each time, not the first."""
    return sorted(items, key=lambda item: zlib.crc32(f"{name} {item}".encode()))[:MOST_ASKED]
