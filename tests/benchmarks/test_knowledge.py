"""What counts as still known: with everything kept all shares are whole, with nothing kept none is left."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import questions
from benchmarks.devset import cases
from benchmarks.facts import arguments, has, identifiers, is_near, surroundings
from benchmarks.figures import CHANCE, ORACLE, OURS, Row, drawn, table_lines
from benchmarks.knowledge import judged
from benchmarks.recordings import Conversation, Moment, licences, moments, read
from benchmarks.whole_messages import RIVALS, oracle

SYSTEM = {"role": "system", "content": "You look after greenhouses."}


def call(name: str, **given: Any) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(given)}
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }
    return [asked, {"role": "tool", "tool_call_id": name, "content": json.dumps({"valve": "V-3071", "state": "open"})}]


def greenhouse() -> Conversation:
    """Long enough to be cut, and with use of what was said at its beginning."""
    talk = [
        SYSTEM,
        {"role": "user", "content": "Bed 14 gets water from valve V-3071 at 05:40, says grower_plan.txt."},
        *call("read_valve", valve="V-3071"),
    ]
    for day in range(60):
        talk += [
            {"role": "user", "content": f"Day {day + 100}: the tomatoes look well, and the fleece came off early."},
            {"role": "assistant", "content": f"Noted for day {day + 100}. I keep the vents half open for now, then."},
        ]
    talk += [{"role": "user", "content": "Water bed 14 as planned."}, *call("open_valve", valve="V-3071", at="05:40")]
    talk.append({"role": "assistant", "content": "Valve V-3071 opens at 05:40, as grower_plan.txt says."})
    return Conversation(id="greenhouse", source="written here", licence="CC0-1.0", kind="service", messages=talk)


def corrected() -> Conversation:
    said = [
        "The frost alarm goes to Ola, on 555-0101.",
        "The frost alarm goes to Ilse from now on, on 555-0177.",
        "Beds are weeded on Tuesday.",
    ]
    answered = {"role": "assistant", "content": "I take a note of it."}
    talk = [SYSTEM, *(one for text in said for one in ({"role": "user", "content": text}, answered))]
    probes = {
        "must_stand": [["alarm", "555-0177"], ["weeded", "Tuesday"]],
        "updates": [{"new": [["alarm", "555-0177"]], "old": ["555-0101"], "how": "restated"}],
        "retold": [],
    }
    return Conversation(
        id="corrected", source="here", licence="CC0-1.0", kind="updates", messages=talk, probes=probes
    )  # fmt: skip


def moments_of(conversation: Conversation) -> list[Moment]:
    found = list(moments(conversation))
    assert found
    return found


SHARES = ("know", "future facts", "user facts", "user turns")


def test_with_everything_kept_all_is_known_and_with_nothing_nothing() -> None:
    for moment in moments_of(greenhouse()):
        figures = judged(moment, moment.messages, limit=moment.tokens)
        assert {figures[name] for name in (*SHARES, "verbatim", "whole")} == {1}
        assert (figures["over limit"], figures["broken pairs"]) == (0, 0)
        figures = judged(moment, [SYSTEM], limit=moment.tokens)
        assert {figures[name] for name in SHARES} == {0}


def test_without_the_outdated_sentence_every_change_is_resolved_and_without_the_new_one_it_misleads() -> None:
    (moment,) = moments_of(corrected())
    newer = [message for message in moment.messages if "0101" not in message["content"]]
    for left, found in ((newer, (1, 1, 0)), (moment.messages[:2], (0, 0, 1))):
        figures = judged(moment, left, limit=moment.tokens)
        assert (figures["know"], figures["resolved"], figures["misled"]) == found


@pytest.mark.parametrize("told_as", ["no longer 555-0101", "it was 555-0101 before", "不再 555-0101"])
def test_an_old_value_that_is_said_to_be_old_misleads_nobody(told_as: str) -> None:
    (moment,) = moments_of(corrected())
    result = [*moment.messages[3:], {"role": "user", "content": f"The frost alarm: {told_as}."}]
    assert judged(moment, result, limit=moment.tokens)["resolved"] == 1


def test_what_is_over_the_limit_loses_its_oldest_messages() -> None:
    (moment,) = moments_of(corrected())
    figures = judged(moment, moment.messages, limit=moment.tokens - 1)
    assert figures["over limit"] == 1
    assert figures["misled"] == 0 < figures["resolved"]


def test_a_bare_list_of_facts_is_no_memory() -> None:
    was = surroundings("V-3071", "Bed gets water from valve V-3071 early, before sunrise.")
    assert is_near("V-3071", was, "Water from the valve V-3071: early")
    assert not is_near("V-3071", was, "V-3071, grower_plan.txt, 05:40")


def test_a_fact_stands_only_as_a_word_of_its_own() -> None:
    assert [has("14", text) for text in ("bed 14 is dry", "第14号", "bed 140 is dry")] == [True, True, False]
    assert not has("ola", "cola")


def test_facts_are_names_numbers_and_values_of_calls() -> None:
    found = identifiers("See grower_plan.txt at https://example.org/plan, bed 14, 05:40, $3.50, the usual.")
    assert found == ["grower_plan.txt", "https://example.org/plan", "14", "05:40", "$3.50"]
    (asked, _) = call("open_valve", valve="V-3071", at={"hours": [5, 40]}, dry=True)
    assert {"V-3071", "3071"} <= set(arguments(asked))
    assert "True" not in arguments(asked)


def test_the_oracle_is_within_the_limit_and_at_least_as_good_as_chance() -> None:
    for moment in moments_of(greenhouse()):
        limit = moment.limit(0.2)
        best, chance = (judged(moment, way(moment, limit), limit=limit) for way in (oracle, RIVALS[CHANCE]))
        assert not best["over limit"]
        assert (best["know"] or 0) >= (chance["know"] or 0)


def test_an_oracle_with_room_for_all_keeps_all_that_is_needed() -> None:
    (moment,) = moments_of(corrected())
    assert judged(moment, oracle(moment, moment.tokens), limit=moment.tokens)["know"] == 1


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_rivals_keep_within_the_limit_and_part_no_call_from_its_result(name: str) -> None:
    (moment, *_) = moments_of(greenhouse())
    figures = judged(moment, RIVALS[name](moment, moment.limit(0.3)), limit=moment.limit(0.3))
    assert (figures["over limit"], figures["broken pairs"], figures["verbatim"], figures["whole"]) == (0, 0, 1, 1)


def written(folder: Path, *conversations: Conversation) -> Path:
    with gzip.open(folder / "some.jsonl.gz", "wt", encoding="utf-8") as file:
        for one in conversations:
            row = {"id": one.id, "source": one.source, "licence": one.licence, "kind": one.kind}
            file.write(
                json.dumps(row | {"messages": one.messages} | ({"probes": one.probes} if one.probes else {})) + "\n"
            )
    return folder


def test_recordings_are_read_from_a_folder_and_their_licences_told(tmp_path: Path) -> None:
    found = list(read(written(tmp_path, greenhouse(), corrected())))
    assert [one.id for one in found] == ["greenhouse", "corrected"]
    assert list(licences(found)) == [
        "service: 1 under CC0-1.0, from written here",
        "updates: 1 under CC0-1.0, from here",
    ]


def test_every_conversation_is_in_one_half_and_stays_there(tmp_path: Path) -> None:
    folder = written(tmp_path, greenhouse(), corrected())
    halves = {half: {one.id for one in read(folder, half=half)} for half in ("tune", "test", "both")}
    assert halves["tune"] | halves["test"] == halves["both"]
    assert not halves["tune"] & halves["test"]


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no \*\.jsonl\.gz"):
        list(read(tmp_path))


def test_a_question_about_a_chat_has_its_answer_in_it() -> None:
    asked = list(questions.of_made_chats(3, 1, 12_000))
    assert len(asked) == questions.MOST_ASKED
    for moment in asked:
        assert moment.question
        assert not any(part in moment.question for part in moment.told)
        assert judged(moment, moment.messages, limit=moment.tokens)["know"] == 1


def test_a_question_about_a_value_does_not_name_it() -> None:
    asked = {moment.question: moment for moment in questions.of_conversation(corrected())}
    assert set(asked) == {"alarm", "weeded"}
    assert judged(asked["alarm"], corrected().messages[3:4], limit=10_000)["know"] == 1
    assert judged(asked["alarm"], corrected().messages[:3], limit=10_000)["know"] == 0


def test_a_later_turn_is_a_question_for_what_it_and_its_answer_mention() -> None:
    questions_of = {moment.question: moment for moment in questions.of_conversation(greenhouse())}
    assert {"V-3071", "05:40"} <= set(questions_of["Water bed 14 as planned."].future)


def row(method: str, conversation: str, number: int, kept: float) -> Row:
    figures = {"know": kept, "misled": 0}
    case = f"{conversation}@{number}"
    return Row(kind="chat", ratio="25", method=method, case=case, conversation=conversation, figures=figures)


def test_chance_and_oracle_stand_beside_every_figure() -> None:
    given = {OURS: 0.8, CHANCE: 0.4, "keep-last": 0.5, ORACLE: 0.9}
    rows = [row(method, name, 1, kept) for method, kept in given.items() for name in ("one", "two")]
    head, know, misled = table_lines(rows)
    assert cells(head) == "tokens|figure|ours (95 %)|chance|best rival|ahead by (95 %)|oracle|cases"
    assert cells(know) == "chat|25 %|know|80.0 (80 to 80)|40.0|50.0 keep-last|+30.0 (+30 to +30)|90.0|2 of 2"
    assert cells(misled).startswith("chat|25 %|misled|0|0|")


def cells(line: str) -> str:
    return re.sub(r"\s{2,}", "|", line.strip())


def test_many_cases_of_one_conversation_are_one_witness() -> None:
    alone = drawn([[1.0], [0.0]] * 10)
    together = drawn([[1.0] * 5, [0.0] * 5] * 2)
    assert together[1] - together[0] > alone[1] - alone[0]


def test_generated_chats_name_what_a_question_would_ask_for() -> None:
    (case,) = cases("chat", 3, 1, chars=12_000)
    assert all(item.about for item in case.needed)
