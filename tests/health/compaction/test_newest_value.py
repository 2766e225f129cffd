"""What changed stands after a compaction, with what it is a value of, however small the room is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from health.services import compact_messages
from health.tokens.messages import count_messages

THINGS = "chimney boiler gutter fence porch cellar attic hedge driveway skylight pantry greenhouse".split()  # noqa: SIM905
ASIDES = (
    ("The wind keeps me awake.", "Earplugs may help, and a heavy curtain."),
    ("What shall I read on the train?", "A short novel is easier to put down when you have to change."),
    ("My knee hurts when I kneel.", "Put a folded towel below it, and take breaks before it hurts."),
)


def said(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": role, "content": text} for pair in pairs for role, text in zip(roles, pair, strict=True)]


def a_house(*changed: tuple[str, str]) -> list[dict[str, Any]]:
    """Somebody tells days of repairs, one thing changes early on, and much else is talked of."""
    dice = Random(5)
    told = [(f"The {thing} is done on {3 + at} June.", "Noted.") for at, thing in enumerate(THINGS)]
    aside = [dice.choice(ASIDES) for _ in range(24)]
    return said(("Keep my calendar, please.", "Gladly."), told[0], *changed, *told[1:], *aside, ("What is next?", ""))[
        :-1
    ]


def compacted(messages: list[dict[str, Any]], share: float) -> str:
    limit = int(share * count_messages(messages, ""))
    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")
    return "\n".join(str(message["content"]) for message in outcome.messages)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.15])
def test_a_new_value_that_names_no_subject_stands_with_the_reply_that_does(share: float) -> None:
    moved = a_house(("No, sorry, 28 June.", "Understood: 28 June for the chimney."))

    text = compacted(moved, share)

    assert "28 June for the chimney" in text
    assert "The chimney is done on 3 June" not in text.replace("[No longer so: The chimney is done on 3 June.]", "")
