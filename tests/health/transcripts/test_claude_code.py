"""Claude Code's logs: answers in several lines become one again, and what is not the chat is left out aloud."""

from __future__ import annotations

import json
from typing import Any

from health.compaction.reading.messages import parse
from health.transcripts import Transcript, read


def line(kind: str, content: Any = None, *, message_id: str | None = None, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": message_id} if message_id else {})
    base = {"type": kind, "uuid": "u", "sessionId": "s", "isSidechain": False, "timestamp": "2026-01-02T03:04:05Z"}
    return base | {"message": message} | fields


def use(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def session(*lines: dict[str, Any]) -> Transcript:
    return read("\n".join(map(json.dumps, lines)).encode())


PARALLEL = (
    line("user", "find the bug"),
    line("assistant", [{"type": "thinking", "thinking": "Look first.", "signature": "s"}], message_id="msg_1"),
    line("assistant", [text("I look.")], message_id="msg_1"),
    line("assistant", [use("Read", "t1", path="a.py")], message_id="msg_1"),
    line("user", [result("t1", "import b")]),
    line("assistant", [use("Read", "t2", path="b.py")], message_id="msg_1"),
    line(
        "user", [result("t2", [text("x = 1"), {"type": "image", "source": {"media_type": "image/png", "data": "AA"}}])]
    ),
    line("assistant", [text("Found it.")], message_id="msg_2"),
)


def test_one_answer_over_several_lines_is_one_message_with_all_its_calls() -> None:
    chat = session(*PARALLEL)

    assert [message["role"] for message in chat.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    answer = chat.messages[1]
    assert (answer["content"], answer["reasoning_content"]) == ("I look.", "Look first.")
    assert [call["function"]["arguments"] for call in answer["tool_calls"]] == ['{"path": "a.py"}', '{"path": "b.py"}']


def test_calls_and_results_pair_without_repair() -> None:
    parsed = parse(session(*PARALLEL).messages)

    assert parsed.warnings == ()
    assert [unit.round_id is not None for unit in parsed.units] == [False, True, True, True, False]
    assert parsed.units[3].image_tokens == 100


def test_words_beside_results_follow_them_as_the_users() -> None:
    chat = session(*PARALLEL[:4], line("user", [result("t1", "import b"), text("and hurry")]))

    assert [(message["role"], message["content"]) for message in chat.messages[2:]] == [
        ("tool", "import b"),
        ("user", "and hurry"),
    ]


def test_side_chains_summaries_and_the_programs_lines_are_left_out_and_said_so() -> None:
    chat = session(
        {"type": "summary", "summary": "Old work", "leafUuid": "x"},
        {"type": "file-history-snapshot", "snapshot": {}},
        {"type": "system", "subtype": "init", "sessionId": "s", "content": "hook"},
        line("user", "hello"),
        line("user", "side task", isSidechain=True),
        line("assistant", [text("side answer")], isSidechain=True),
        line("assistant", [text("API Error: 529")], isApiErrorMessage=True),
        line("assistant", [text("hi")]),
    )

    assert [message["content"] for message in chat.messages] == ["hello", "hi"]
    assert chat.notes == (
        "2 messages of side chains left out.",
        "1 summary line left out.",
        "1 error message left out.",
        "2 lines of the program's own left out.",
    )


def test_what_the_program_says_as_the_user_is_no_users_word() -> None:
    chat = session(line("user", "Caveat: generated", isMeta=True), line("user", "hello"))

    assert [unit.inserted for unit in parse(chat.messages).units] == [True, False]


def test_an_answer_after_the_users_words_is_a_new_one_even_with_the_same_id() -> None:
    chat = session(
        line("assistant", [text("one")], message_id="m"),
        line("user", "go on"),
        line("assistant", [text("two")], message_id="m"),
    )

    assert [message["content"] for message in chat.messages] == ["one", "go on", "two"]
