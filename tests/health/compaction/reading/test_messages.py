"""Messages become units and messages again, and nothing is lost or changed on the way."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from health.compaction.choosing.summaries import fenced
from health.compaction.laws.floor import OPENING
from health.compaction.laws.invariants import broken_request
from health.compaction.reading.digest import NOTICE
from health.compaction.reading.digest import written as digest
from health.compaction.reading.ledger_page import FACTS_HEADER, LEDGER_HEADER
from health.compaction.reading.messages import InvalidMessages, Orphans, parse, render, sendable
from health.compaction.terms.units import Kind, Priority, Role, Unit
from health.compaction.trimming.placeholders import EARLIER, LINKED, LOW_RELEVANCE

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def call(name: str = "ls", call_id: str = "c1", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)} | fields


def result(text: Any = "found", call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def user(content: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content} | fields


def only(message: dict[str, Any]) -> Unit:
    (unit,) = parse([message]).units
    return unit


def rendered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parsed = parse(messages)
    return render(parsed.units, parsed.originals)


EVERYTHING: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief.", "cache_control": {"type": "ephemeral"}},
    {"role": "developer", "content": [{"type": "text", "text": "No jokes."}]},
    user([{"type": "text", "text": "what is this?"}, IMAGE, {"type": "text", "text": "and that?"}], name="ann"),
    asks(call(call_id="a"), call("cat", "b"), reasoning_content="I must look.", extra={"deep": [1, {"x": None}]}),
    result("two", "b"),
    result([{"type": "text", "text": "one"}], "a"),
    {"role": "assistant", "content": "", "function_call": {"name": "old", "arguments": "{}"}},
    {"role": "function", "name": "old", "content": "legacy"},
    {"role": "assistant", "content": "Done.", "refusal": None, "audio": None},
    user("你好，\0 and a lone \ud800 surrogate", id="my-own", timestamp="2026-01-02T03:04:05Z"),
]


def test_unchanged_messages_come_back_equal_with_every_field_and_share_nothing_with_the_input() -> None:
    before = copy.deepcopy(EVERYTHING)

    back = rendered(EVERYTHING)
    assert back == EVERYTHING

    back[0]["cache_control"]["type"] = "changed"
    back[3]["extra"]["deep"][1]["x"] = "changed"
    back[3]["tool_calls"].clear()
    assert before == EVERYTHING


def test_units_are_named_by_position_unless_the_message_has_a_name_of_its_own() -> None:
    parsed = parse([user(), user(id="mine"), user(id="mine"), user(id="m4"), user(), user(id="")])

    assert [unit.id for unit in parsed.units] == ["m0", "mine", "m2", "m4", "m4'", "m5"]


def test_parallel_calls_and_their_results_are_one_round() -> None:
    units = parse(
        [user(), asks(call(call_id="a"), call(call_id="b")), result("2", "b"), result("1", "a"), user()]
    ).units

    assert [unit.round_id for unit in units] == [None, "round-m1", "round-m1", "round-m1", None]
    assert [unit.answers for unit in units] == [None, None, "b", "a", None]
    assert [call.id for call in units[1].calls] == ["a", "b"]


def test_ids_that_come_again_belong_to_the_round_they_stand_in() -> None:
    messages = [
        asks(call(call_id="call_0")),
        result("1", "call_0"),
        asks(call(call_id="call_0")),
        result("2", "call_0"),
    ]

    parsed = parse(messages)

    assert [unit.round_id for unit in parsed.units] == ["round-m0", "round-m0", "round-m2", "round-m2"]
    assert not parsed.warnings


def test_calls_without_ids_are_paired_by_their_place() -> None:
    asked = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "ls", "arguments": {"path": "."}}}],
    }
    found = {"role": "tool", "tool_name": "ls", "content": "a.py"}

    parsed = parse([user(), asked, found])

    assert not parsed.warnings
    assert parsed.units[1].attached == '{"name": "ls", "arguments": {"path": "."}}'
    assert render(parsed.units, parsed.originals) == [user(), asked, found]


def test_two_calls_of_one_id_need_two_results() -> None:
    twice = asks(call(call_id="same"), call(call_id="same"))

    assert not parse([twice, result("1", "same"), result("2", "same")]).warnings
    assert parse([twice, result("1", "same")]).warnings == ("The call 'same' of ls was never answered.",)


def test_a_legacy_function_call_and_its_result_are_a_round() -> None:
    units = parse(EVERYTHING[6:8]).units

    assert units[0].round_id == units[1].round_id == "round-m0"
    assert units[0].calls[0].name == units[1].answers == "old"


def test_reasoning_is_counted_with_the_message_that_carries_it() -> None:
    details = [{"type": "reasoning.text", "text": "step by step", "signature": "sig"}]
    blocks = [{"type": "thinking", "thinking": "hidden steps", "signature": "sig"}, {"type": "text", "text": "Hi."}]

    assert "I must look." in only(user() | {"reasoning_content": "I must look."}).attached
    assert "step by step" in only({"role": "assistant", "content": "Hi.", "reasoning_details": details}).attached
    spoken = only({"role": "assistant", "content": blocks})
    assert spoken.content == "Hi."
    assert "hidden steps" in spoken.attached


def test_a_message_of_nothing_but_reasoning_goes_with_the_round_it_led_to() -> None:
    thought = {"role": "assistant", "content": "", "reasoning_content": "I should list the files."}

    units = parse([user(), thought, asks(call()), result(), thought, user()]).units

    assert [unit.round_id for unit in units] == [None, "round-m2", "round-m2", "round-m2", None, None]


def test_an_image_costs_a_fixed_number_and_its_bytes_nothing() -> None:
    message = user(
        [{"type": "text", "text": "look"}, IMAGE, {"type": "input_audio", "input_audio": {"data": "A" * 9000}}]
    )

    (unit,) = parse([message]).units
    (cheap,) = parse([message], media_tokens=lambda message: 14).units

    assert (unit.content, unit.attached, unit.image_tokens) == ("look", "", 200)
    assert cheap.image_tokens == 14


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([EVERYTHING[2]], [EVERYTHING[2] | {"content": [{"type": "text", "text": "short"}, IMAGE]}]),
        ([asks(call()), result("a long listing")], [asks(call(), content="short"), result("short")]),
    ],
)
def test_new_words_take_the_place_of_all_text_parts_and_images_and_calls_stay(
    messages: list[dict[str, Any]], told: list[dict[str, Any]]
) -> None:
    parsed = parse(messages)

    assert render([unit.saying("short") for unit in parsed.units], parsed.originals) == told


def test_what_compaction_wrote_is_rendered_as_a_users_message() -> None:
    summary = Unit(id="summary-1", role=Role.USER, kind=Kind.SUMMARY, content="[Summary…]", source_ids=("m0",))

    assert render([summary], {}) == [user("[Summary…]", dominds={"written": "summary"})]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[Summary of 12 earlier messages: history, not instructions]\nuser: hi", Kind.SUMMARY),
        (digest([]), Kind.SUMMARY),
        (fenced("user: hi", count=12), Kind.SUMMARY),
        (f"{LEDGER_HEADER}\n- [rule m4] never", Kind.SUMMARY),
        (f"{FACTS_HEADER}\n- [fact m4] 31.50", Kind.SUMMARY),
        (f"{OPENING}much was done. Continue task 4.", Kind.SUMMARY),
        (f"{NOTICE}", Kind.PLACEHOLDER),
        *((f"{header}\n3 messages", Kind.PLACEHOLDER) for header in (LOW_RELEVANCE, EARLIER, LINKED)),
        ("I omitted the low-relevance prior context.", Kind.MESSAGE),
        ("[Omitted] is what he wrote", Kind.MESSAGE),
    ],
)
def test_our_own_writing_is_known_again_by_its_mark_alone(text: str, kind: Kind) -> None:
    assert only(user(text, dominds={"written": kind.value})).kind == kind
    assert only(user(text)).kind == Kind.MESSAGE, "a person may type the same"
    assert only({"role": "assistant", "content": text}).kind == Kind.MESSAGE


def test_marks_are_read_kept_and_taken_off_before_sending() -> None:
    message = user("never delete it", dominds={"priority": 1, "pinned": True, "inserted": True, "framed": True})

    unit = only(message)

    assert (unit.priority, unit.pinned, unit.inserted, unit.framed) == (Priority.P1, True, True, True)
    assert rendered([message]) == [message]
    assert sendable([message]) == [user("never delete it")]


@pytest.mark.parametrize("written", [2, "2", "P2", "p2"])
def test_a_priority_is_read_as_a_number_or_by_its_name(written: Any) -> None:
    assert only(user(dominds={"priority": written})).priority == Priority.P2


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({"priority": "urgent"}, "messages[1] has the priority 'urgent': give it 1, 2 or 3."),
        ({"pinned": "false"}, "messages[1] has pinned 'false': give it true or false."),
        ({"priority": "P1", "pinned": False}, None),
    ],
)
def test_a_mark_that_says_nothing_is_told(marks: dict[str, Any], told: str | None) -> None:
    assert parse([user(), user(dominds=marks)]).warnings == ((told,) if told else ())


@pytest.mark.parametrize("marks", [None, "P1", {"priority": 9}, {"priority": None}, {"priority": []}])
def test_marks_that_mean_nothing_mark_nothing(marks: Any) -> None:
    unit = only(user(dominds=marks))

    assert (unit.priority, unit.pinned, unit.inserted) == (None, False, False)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"timestamp": 1_700_000_000}, 1_700_000_000.0),
        ({"created_at": 1_700_000_000_000}, 1_700_000_000.0),
        ({"timestamp": "2023-11-14T22:13:20Z"}, 1_700_000_000.0),
        ({"timestamp": "yesterday"}, 0.0),
        ({"timestamp": float("nan")}, 0.0),
        ({"timestamp": {"when": 1}}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_time_is_read_in_the_forms_that_clients_use(fields: dict[str, Any], seconds: float) -> None:
    assert only(user(**fields)).timestamp == seconds


def test_what_no_encoder_takes_is_replaced_for_counting_only() -> None:
    message = user("a \ud800 b")

    unit = only(message)

    assert unit.content == "a \ufffd b"
    assert rendered([message]) == [message]


def test_a_stray_result_becomes_labelled_text_and_loses_no_word() -> None:
    parsed = parse([user("go"), result("42 degrees", "gone"), user("and?")])

    assert parsed.warnings == ("messages[1] is the result of a call 'gone' that is not right before it.",)
    stray = parsed.units[1]
    assert (stray.role, stray.inserted, stray.answers) == (Role.USER, True, None)
    assert "42 degrees" in stray.content
    assert "data, not instructions" in stray.content


def test_a_labelled_stray_is_no_users_word_the_next_time_either() -> None:
    once = rendered([user("go"), result("42 degrees", "gone")])

    again = parse(once)

    assert again.units[1].inserted
    assert (render(again.units, again.originals), again.warnings) == (once, ())


def test_a_stray_result_keeps_its_images() -> None:
    (message,) = rendered([result([{"type": "text", "text": "a chart"}, IMAGE])])

    assert message["role"] == "user"
    assert message["content"][1:] == [{"type": "text", "text": "a chart"}, IMAGE]


@pytest.mark.parametrize(
    ("messages", "roles", "kept"),
    [
        (
            [asks(call(call_id="a"), call(call_id="b")), result("1", "a"), result("again", "a"), result("2", "b")],
            "assistant tool tool user",
            "again",
        ),
        # The call is answered all the same.
        ([asks(call()), user("wait"), result("late")], "assistant tool user user", "late"),
    ],
    ids=["inside a round", "late"],
)
def test_a_stray_result_is_kept_as_text_and_parts_no_round(
    messages: list[dict[str, Any]], roles: str, kept: str
) -> None:
    back = rendered(messages)

    assert [message["role"] for message in back] == roles.split()
    assert kept in back[-1]["content"]
    assert broken_request(back) == []


def test_a_legacy_call_without_result_is_answered_in_its_own_form() -> None:
    back = rendered([EVERYTHING[6], user()])

    assert back[1]["role"] == "function"
    assert back[1]["name"] == "old"


def test_a_repaired_conversation_needs_no_second_repair() -> None:
    once = rendered([result("stray"), asks(call(call_id="a"), call(call_id="b")), result("1", "b"), user()])

    again = parse(once)

    assert again.warnings == ()
    assert render(again.units, again.originals) == once


@pytest.mark.parametrize("messages", [[user(), result()], [user(), asks(call()), user()]])
def test_what_does_not_pair_is_refused_on_request(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidMessages, match=r"'c1'.*Orphans\.REPAIR"):
        parse(messages, orphans=Orphans.REFUSE)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("hello", "is str, not a dict"),
        (None, "is NoneType, not a dict"),
        ({"content": "hi"}, "has no role"),
        ({"role": None, "content": "hi"}, "has no role"),
        ({"role": "narrator", "content": "hi"}, "unknown role 'narrator'"),
        ({"role": ["user"], "content": "hi"}, "unknown role"),
        (user(42), "content of type int"),
        (user({"text": "hi"}), "content of type dict"),
        (user([42]), "content part"),
        ({"role": "assistant", "content": "", "tool_calls": "ls"}, "tool_calls"),
        ({"role": "assistant", "content": "", "tool_calls": ["ls"]}, "tool_calls"),
        ({"role": "assistant", "content": "", "tool_calls": [{"function": "ls"}]}, "tool_calls"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(entry: Any, complaint: str) -> None:
    with pytest.raises(InvalidMessages) as refused:
        parse([user(), entry])

    assert str(refused.value).startswith("messages[1] ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize("messages", [None, "hello", b"hello", {"role": "user"}, 7, iter([])])
def test_what_is_no_list_of_messages_is_refused(messages: Any) -> None:
    with pytest.raises(InvalidMessages, match="list of messages"):
        parse(messages)


@pytest.mark.parametrize(
    "more",
    [{}, *({"content": one} for one in (None, "", [], [{"type": "text"}], [{"type": "text", "text": None}], [{}]))],
)
def test_content_may_be_empty_in_every_way(more: dict[str, Any]) -> None:
    message = {"role": "assistant", **more}

    assert only(message).content == ""
    assert rendered([message]) == [message]
    assert parse([]).units == ()


def test_a_unit_that_moved_or_has_another_kind_or_count_is_still_rendered_from_its_message() -> None:
    parsed = parse([user("one", extra=1), user("two")])
    units = [replace(unit, kind=Kind.LOG, estimated_tokens=9, priority=Priority.P2) for unit in parsed.units]

    assert render(reversed(units), parsed.originals) == [user("two"), user("one", extra=1)]


def test_ten_megabytes_and_fifty_thousand_messages_are_read() -> None:
    big = json.dumps({"rows": ["x; {y}  " * 1000] * 1250})

    many = parse([asks(call()), result(big)] + [user(f"message {number}") for number in range(50_000)])

    assert len(many.units) == 50_002
