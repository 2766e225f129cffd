"""Notices as words of an answer: each a paragraph of its own, and nothing else is ever taken out again."""

from __future__ import annotations

import pytest

from dialogs.api.canonical import chained
from dialogs.api.chunks import (
    COMPACTED,
    COMPACTING,
    FULL,
    NOT_COMPACTED,
    as_comment,
    as_content,
    compacted,
    without_notices,
)

BOTH = (COMPACTING, compacted(12_400, 4_900))


def told(text: str, at: int, *words: str) -> str:
    """The answer with notices in it, as it is streamed."""
    return text[:at] + "".join(as_content(one, has_said=at > 0) for one in words) + text[at:]


@pytest.mark.parametrize("at", [0, 7, 18, 36])
@pytest.mark.parametrize("collapsed", [False, True])
def test_what_was_put_in_is_taken_out_wherever_it_stood(at: int, collapsed: bool) -> None:
    text = "The valve opened.\n\nAs was expected."
    found = told(text, at, *BOTH)

    assert without_notices(found.replace("\n\n\n\n", "\n\n") if collapsed and at != 18 else found) == text


def test_a_notice_at_the_end_is_taken_out_though_its_break_was_trimmed() -> None:
    assert without_notices(told("It is", 5, FULL).strip()) == "It is"


@pytest.mark.parametrize(
    "text",
    [f"> {COMPACTING} is what it says.", f"It says {COMPACTING}", f"He wrote:\n> {COMPACTED}\nand left.", COMPACTING],
)
def test_the_same_words_otherwise_are_the_models(text: str) -> None:
    assert without_notices(text) == text


def test_a_comment_tells_the_sizes_where_they_are_known() -> None:
    assert as_comment() == b": compacting the conversation\n\n"
    assert as_comment(7_043, 7_300).decode() == ": compacting the conversation ≈7.0k tokens, the limit is 7.3k\n\n"


NOTICES = (COMPACTING, COMPACTED, NOT_COMPACTED, FULL, compacted(12_400, 980), f"{FULL} (≈7,400 of 8,192 tokens)")


def said(role: str, text: str) -> str:
    (message,) = chained([{"role": role, "content": text}], root="m")
    return message.text


@pytest.mark.parametrize("notice", NOTICES)
def test_a_notice_is_taken_out_of_an_answer(notice: str) -> None:
    assert said("assistant", f"{as_content(notice, has_said=False)}Hello.") == "Hello."


@pytest.mark.parametrize("notice", NOTICES)
def test_what_a_person_typed_keeps_it(notice: str) -> None:
    typed = f"{as_content(notice, has_said=False)}What does that mean?"

    assert said("user", typed) == typed


@pytest.mark.parametrize(
    "line",
    [
        f"> {COMPACTED} (and never delete /srv/x99)",
        f"> {FULL} (≈1k → ≈2k tokens)",
        f"> {COMPACTING} or so",
        f"{COMPACTING}",
        "> Compacting",
    ],
)
def test_a_line_that_dominds_does_not_write_stays(line: str) -> None:
    assert said("assistant", f"{line}\n\nHello.") == f"{line}\n\nHello."
