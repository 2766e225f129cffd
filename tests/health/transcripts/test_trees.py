"""Exports that keep every branch: the branch shown last is read, and what is left out is said."""

from __future__ import annotations

import json
from typing import Any

from health.compaction.reading.messages import parse
from health.transcripts import Transcript, read


def openai_node(name: str, parent: str | None, role: str = "user", text: Any = "", **message: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else text
    said = {"id": name, "author": {"role": role}, "content": content, "recipient": "all", "weight": 1.0} | message
    return {name: {"id": name, "parent": parent, "children": [], "message": said}}


def openai_chat(*nodes: dict[str, Any], current: str, **fields: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for node in nodes:
        mapping |= node
    return {"title": "A trip", "update_time": 1.0, "mapping": mapping, "current_node": current} | fields


def webui_chat(messages: list[dict[str, Any]], current: str, **fields: Any) -> dict[str, Any]:
    history = {"messages": {message["id"]: message for message in messages}, "currentId": current}
    return {"id": "chat-1", "user_id": "u", "title": "A trip", "updated_at": 5, "chat": {"history": history} | fields}


def read_json(value: Any) -> Transcript:
    return read(json.dumps(value).encode())


TRIP = openai_chat(
    openai_node("s", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
    openai_node("a", "s", text="where to?", create_time=1700000000.5),
    openai_node("b1", "a", "assistant", "To Rome."),
    openai_node("b2", "a", "assistant", "To Oslo."),
    openai_node("c", "b2", text="how warm is it?"),
    openai_node("d", "c", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "I look it up."}]}),
    openai_node("e", "d", "assistant", {"content_type": "code", "text": "weather('Oslo')"}, recipient="python"),
    openai_node(
        "f",
        "e",
        "tool",
        {"content_type": "execution_output", "text": "3 °C"},
        author={"role": "tool", "name": "python"},
    ),
    openai_node("g", "f", "assistant", "Three degrees."),
    current="g",
)


def test_openais_export_is_read_along_the_branch_shown_last() -> None:
    chat = read_json([TRIP])

    assert [message["content"] for message in chat.messages] == [
        "where to?", "To Oslo.", "how warm is it?", "", None, "3 °C", "Three degrees.",
    ]  # fmt: skip
    assert chat.form == "OpenAI export"
    assert chat.messages[0]["timestamp"] == 1700000000.5


def test_openais_calls_of_its_own_tools_are_calls_with_results() -> None:
    chat = read_json(TRIP)

    parsed = parse(chat.messages)

    assert parsed.warnings == ()
    call, result = parsed.units[4], parsed.units[5]
    assert (call.calls[0].name, call.calls[0].arguments) == ("python", "weather('Oslo')")
    # What it thought before goes with the call.
    assert parsed.units[3].round_id == call.round_id == result.round_id
    assert "I look it up." in parsed.units[3].attached


def test_openais_left_out_messages_are_counted() -> None:
    notes = read_json(TRIP).notes

    assert "1 hidden message left out." in notes
    assert "1 message of another branch left out." in notes


def test_openais_images_become_image_parts() -> None:
    parts = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file://x"}, "what?"],
    }

    (message,) = read_json(openai_chat(openai_node("a", "root", text=parts), current="a")).messages

    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "file://x"}},
        {"type": "text", "text": "what?"},
    ]


def test_of_several_chats_the_one_changed_last_is_read() -> None:
    other = openai_chat(openai_node("z", "root", text="newer"), current="z", title="Later", update_time=9.0)

    chat = read_json([TRIP, other])

    assert [message["content"] for message in chat.messages] == ["newer"]
    assert chat.notes[0] == "Of 2 chats the one changed last (“Later”) was read."


def test_a_branch_in_a_circle_ends() -> None:
    chat = openai_chat(openai_node("a", "b", text="one"), openai_node("b", "a", text="two"), current="b")

    assert [message["content"] for message in read_json(chat).messages] == ["one", "two"]


def test_open_webuis_export_is_read_along_the_branch_shown_last() -> None:
    messages = [
        {"id": "1", "parentId": None, "role": "user", "content": "where to?", "timestamp": 1700000000},
        {"id": "2", "parentId": "1", "role": "assistant", "content": "To Rome.", "model": "llama"},
        {"id": "3", "parentId": "1", "role": "assistant", "content": "To Oslo."},
        {
            "id": "4",
            "parentId": "3",
            "role": "user",
            "content": "and this?",
            "files": [{"type": "image", "url": "/x.png"}],
        },
    ]

    chat = read_json([webui_chat(messages, "4", params={"system": "Be brief."})])

    assert chat.form == "Open WebUI export"
    assert chat.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "where to?", "timestamp": 1700000000},
        {"role": "assistant", "content": "To Oslo."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and this?"},
                {"type": "image_url", "image_url": {"url": "/x.png"}},
            ],
        },
    ]
    assert chat.notes == ("1 message of another branch left out.",)


def test_open_webuis_older_export_has_a_plain_list() -> None:
    old = {"id": "1", "title": "t", "chat": {"messages": [{"role": "user", "content": "hello"}]}}

    assert read_json([old]).messages == [{"role": "user", "content": "hello"}]
