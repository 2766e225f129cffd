"""What makes a request valid for the strictest server, as a table and over random talks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.providers.base import ChatMessage, MessagesRefused, ToolCall
from dialogs.providers.errors import from_answer
from dialogs.providers.laws import (
    EARLIER,
    UNANSWERED,
    begun_by_a_user,
    broken_law,
    merged,
    next_shape,
    paired,
    shaped,
    without_calls,
)
from dialogs.providers.openai_compatible import wire_message
from tests.standins.templates import TEMPLATES, WITH_TOOLS

CALL = ToolCall(id="call_17_0", name="look", arguments='{"at": 1}')


def system(text: str = "You help.") -> ChatMessage:
    return ChatMessage(role="system", content=text)


def user(text: str = "Go on.") -> ChatMessage:
    return ChatMessage(role="user", content=text)


def answer(text: str = "Done.") -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def calling(text: str = "") -> ChatMessage:
    return ChatMessage(role="assistant", content=text, tool_calls=(CALL,))


def result(text: str = "42") -> ChatMessage:
    return ChatMessage(role="tool", content=text, tool_call_id=CALL.id)


def roles(messages: Sequence[ChatMessage]) -> str:
    return " ".join("call" if one.tool_calls else one.role for one in messages)


TABLE: dict[str, tuple[list[ChatMessage], str]] = {
    "as it should be": ([system(), user(), answer(), user()], "system user assistant user"),
    "two users": ([user("A"), user("B")], "user"),
    "two answers": ([user(), answer("A"), answer("B"), user()], "user assistant user"),
    "an answer, then a call": ([user(), answer(), calling(), result()], "user call tool"),
    "a user after a result": ([user(), calling(), result(), user()], "user call tool assistant user"),
    "an answer begins": ([system(), answer(), user()], "system user assistant user"),
    "a late system message": ([system(), user("A"), system("B"), answer(), user()], "system user assistant user"),
    "two system messages": ([system("A"), system("B"), user()], "system user"),
    "an empty answer": ([user("A"), answer("  "), user("B")], "user"),
}


@pytest.mark.parametrize("case", TABLE)
def test_a_strict_server_is_sent(case: str) -> None:
    messages, sent = TABLE[case]

    assert roles(shaped(messages, "strict")) == sent


def test_nothing_is_changed_for_a_server_that_refused_nothing() -> None:
    messages = [answer(), user("A"), user("B"), system("C")]

    assert shaped(messages, "") == messages


def test_a_call_and_its_result_keep_one_id_of_nine_letters() -> None:
    call, found = shaped([user(), calling(), result()], "strict")[1:]

    assert call.tool_calls[0].id == found.tool_call_id
    assert len(found.tool_call_id or "") == 9


def test_images_stay_when_messages_are_merged() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    shown = ChatMessage(role="user", content="Look.", parts=({"type": "text", "text": "Look."}, image))

    (one,) = merged([shown, user("And now?")])

    assert [part["type"] for part in one.parts] == ["text", "image_url", "text"]
    assert one.content == "Look.\n\nAnd now?"


def test_without_a_system_role_the_instructions_begin_the_first_message() -> None:
    (one,) = shaped([system("Never delete."), user("Hello")], "no_system")

    assert one.content.index("Never delete.") < one.content.index("Hello")


@pytest.mark.parametrize(
    ("shape", "words", "found"),
    [
        ("", "Conversation roles must alternate user/assistant/...", "strict"),
        ("", "Jinja Exception: System role not supported", "no_system"),
        ("strict", "System role not supported", "no_system"),
        ("strict", "Conversation roles must alternate", None),
        ("no_system", "System role not supported", None),
    ],
)
def test_the_next_shape_is_stricter_or_none(shape: str, words: str, found: str | None) -> None:
    assert next_shape(shape, words) == found


@pytest.mark.parametrize(
    "words",
    [
        "Assistant message must have either content or tool_calls, but not none.",
        "Invalid assistant message: role='assistant' content=None tool_calls=None prefix=False",
        "Invalid request: the message at position 2 with role 'assistant' must not be empty",
        "assistant messages must include non-empty content or tool_calls",
        "The content field in the Message object at messages.1 is empty. Add a ContentBlock object.",
        "Each message must have at least one content element.",
    ],
)
def test_a_server_that_takes_no_answer_without_a_word_asks_for_another_shape(words: str) -> None:
    assert isinstance(from_answer(400, {"error": {"message": words}}), MessagesRefused)


word = st.text("abc \n", min_size=0, max_size=6)
rounds = st.tuples(word, word).map(lambda texts: [calling(texts[0]), result(texts[1])])
single = st.one_of(word.map(user), word.map(answer), word.map(system)).map(lambda one: [one])
talks = st.lists(st.one_of(single, single, rounds), max_size=12).map(
    lambda found: [one for part in found for one in part] + [user("What now?")]
)


def wired(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [wire_message(one) for one in messages]


@pytest.mark.parametrize("name", WITH_TOOLS)
@given(talk=talks)
def test_every_talk_can_be_sent_to_a_model_with_this_template(name: str, talk: list[ChatMessage]) -> None:
    assert TEMPLATES[name](wired(shaped(talk, "strict"))) == ""


@pytest.mark.parametrize(("name", "shape"), [("gemma 3", "strict"), ("gemma 2", "no_system")])
@given(talk=talks)
def test_every_talk_can_be_sent_to_a_model_without_tools(name: str, shape: str, talk: list[ChatMessage]) -> None:
    assert TEMPLATES[name](wired(shaped(without_calls(talk), shape))) == ""


ids = st.sampled_from(["a", "b"])
results = st.tuples(word, ids).map(lambda one: ChatMessage(role="tool", content=one[0], tool_call_id=one[1]))
calls = st.tuples(word, st.lists(ids, max_size=3)).map(
    lambda one: ChatMessage(
        role="assistant", content=one[0], tool_calls=tuple(ToolCall(id=name, name="f", arguments="") for name in one[1])
    )
)
unpaired = st.lists(st.one_of(results, results, calls, word.map(user)), max_size=12).map(
    lambda talk: [user("Begin."), *talk, user("What now?")]
)


@pytest.mark.parametrize("name", WITH_TOOLS)
@given(talk=unpaired)
def test_whatever_calls_and_results_a_client_sends_can_be_sent_on(name: str, talk: list[ChatMessage]) -> None:
    found = paired(talk)

    assert broken_law(found) == ""
    assert TEMPLATES[name](wired(shaped(found, "strict"))) == ""
    sent = "\n".join(one.content for one in found)
    assert all(one.content in sent for one in talk)
    assert [call.name for one in found for call in one.tool_calls] == ["f" for one in talk for _call in one.tool_calls]
    assert paired(found) == found


@pytest.mark.parametrize("shape", ["strict", "no_system"])
@given(talk=talks)
def test_no_word_is_lost(shape: str, talk: list[ChatMessage]) -> None:
    sent = "\n".join(one.content for one in shaped(talk, shape))

    assert all(one.content.strip() in sent for one in talk)


@given(talk=talks)
def test_what_is_shaped_is_shaped_no_further(talk: list[ChatMessage]) -> None:
    once = shaped(talk, "strict")

    assert shaped(once, "strict") == once


def test_a_talk_that_begins_with_an_answer_is_begun_by_the_user() -> None:
    assert [one.content for one in begun_by_a_user([system("S"), answer("A")])] == ["S", EARLIER, "A"]


def test_between_a_result_and_a_users_words_stands_who_spoke_first() -> None:
    assert shaped([user(), calling(), result(), user("Stop!")], "strict")[-2:] == [answer(UNANSWERED), user("Stop!")]
