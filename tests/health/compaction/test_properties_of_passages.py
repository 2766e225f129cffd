"""What holds of passages whatever was said: nothing is invented, and more room tells no less."""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.compaction.reading.digest import HEADER, NO_LONGER, NOTICE, SHORT_HEADER
from health.compaction.reading.ledger_page import FACTS_HEADER, FOOTER, LEDGER_HEADER, SEEN_HEADER
from health.compaction.reading.text import CJK
from health.compaction.terms.units import total
from health.services import compact_messages
from health.tokens.messages import count_messages
from tests.health.compaction.histories import TEXTS, payload

WORDS = re.compile(rf"[{CJK}]|[^\W{CJK}]+")
ESCAPED = re.compile(r"\\u([0-9a-f]{4})")
# What compaction says itself: headings of what it writes, marks of gaps and counts of what was left out.
OURS = re.compile(
    "|".join(
        [
            *map(re.escape, (HEADER, SHORT_HEADER, NOTICE, NO_LONGER.partition("{")[0])),
            *map(re.escape, (LEDGER_HEADER, FACTS_HEADER, SEEN_HEADER, FOOTER)),
            r"\[\d+ more in the archive\]",
            r"^- \[\w+ \S+\] ",
            r"^(?:user|assistant|tool):$",
            r"\[… [^\]]+ …\](?:\": null)?",
        ]
    ),
    re.M,
)
# Of encoded data the beginning may stand.
SAID = [text for name, text in TEXTS.items() if name != "blob"]
VALUES = (
    "The {what} is on {day}.",
    "The {what} moved to {day}.",
    "No, sorry, {day}.",
    "The {what} costs {number} euros.",
    "Make the {what} {number} euros.",
    "Please cancel the {what}.",
    "Never book the {what} before {number}.",
    "{what}改到{number}元。",
    "{what}预算{number}元。",
)
# Of the words of a room, so many are told in twice that room.
LEAST_TOLD = 0.8
thorough = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def a_value(dice: Random) -> str:
    what, day = dice.choice(("ferry", "budget", "concert", "roof", "渡船")), dice.choice(("Monday", "Friday", "3 May"))
    return dice.choice(VALUES).format(what=what, day=day, number=dice.randint(2, 99) * 10)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Values that change, code, logs, Chinese, rounds of calls: in any order, some of it word for word again."""
    dice = Random(draw(st.integers(0, 2**16)))
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help two friends. Answer briefly."}]
    for turn in draw(st.lists(st.sampled_from(("user", "user", "value", "assistant", "round", "again")), max_size=24)):
        number = len(messages)
        text = dice.choice(SAID)(dice)
        if turn == "round":
            function = {"name": "look", "arguments": json.dumps({"of": dice.choice(("roof", "ferry")), "page": number})}
            call = {"id": f"c{number}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": payload(dice, 4) or text})
        elif turn == "again":
            messages.append({"role": "user", "content": dice.choice(messages)["content"]})
        else:
            said = a_value(dice) if turn == "value" else text
            messages.append({"role": "assistant" if turn == "assistant" else "user", "content": said})
    return [*messages, {"role": "user", "content": "What is left to do?"}]


def words(messages: list[dict[str, Any]]) -> Counter[str]:
    texts = [str(message.get("content") or "") for message in messages]
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    texts += [f"{call['name']} {call['arguments']}" for call in calls]
    return Counter(word for text in texts for word in WORDS.findall(OURS.sub(" ", ESCAPED.sub(unescaped, text))))


def unescaped(hit: re.Match[str]) -> str:
    return chr(int(hit[1], 16))


def limit_of(messages: list[dict[str, Any]], share: float) -> int:
    return 64 + count_messages([messages[0], messages[-1]], "") + int(share * count_messages(messages, ""))


shares = st.sampled_from((0.02, 0.05, 0.1, 0.2, 0.3, 0.45))


@thorough
@given(conversations(), shares)
def test_no_word_stands_that_nobody_said(messages: list[dict[str, Any]], share: float) -> None:
    outcome = compact_messages(messages, limit_tokens=limit_of(messages, share), embedder="none")

    assert not words(outcome.messages).keys() - words(messages).keys()


@thorough
@given(conversations(), shares)
def test_more_room_tells_no_fewer_words(messages: list[dict[str, Any]], share: float) -> None:
    """In twice the room a long piece fits that took the place of short ones: of 6,000 conversations two told fewer
    words then, by a sixth at most. In four times the room none did."""
    limit = limit_of(messages, share)

    rooms = [limit, 2 * limit, 4 * limit]
    small, twice, large = (
        len(words(compact_messages(messages, limit_tokens=room, embedder="none").messages)) for room in rooms
    )

    assert twice >= LEAST_TOLD * small
    assert large >= small


@thorough
@given(conversations(), shares)
def test_it_fits_is_in_order_and_changes_no_more(messages: list[dict[str, Any]], share: float) -> None:
    limit = limit_of(messages, share)

    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")
    again = compact_messages(outcome.messages, limit_tokens=limit, embedder="none")

    assert count_messages(outcome.messages, "") <= limit
    assert outcome.estimated_tokens_after == total(outcome.state.units) + outcome.state.overhead_tokens
    times = [unit.timestamp for unit in outcome.state.units if unit.timestamp]
    assert times == sorted(times)
    assert again.messages == outcome.messages
