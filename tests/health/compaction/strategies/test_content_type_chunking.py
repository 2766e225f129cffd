"""Each kind of content is shortened in its own way and to its own share; code and plans never lose a word."""

from __future__ import annotations

import ast
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from health.compaction.config import CompressRatios, ContentTypeChunking, ContextConfig
from health.compaction.strategies.content_type_chunking import content_type_chunking
from health.compaction.terms.ports import Attempt
from health.compaction.terms.units import Kind, Priority, Role, Unit
from tests.health.compaction.builders import (
    KIT,
    Listening,
    a_round,
    a_state,
    a_unit,
    broken_laws,
    ids,
    play,
)

PLACES = ("kitchen", "cellar", "attic", "garden", "garage", "hall", "study", "porch", "stable", "tower")
PROSE = " ".join(f"The {place} is painted in colour number {i} today." for i, place in enumerate(PLACES))
CODE = 'import os\n\n# gone, all of it\n\n\ndef f(a: int) -> str:\n    """Doc."""\n    return "# stays"  # gone\n'
TIDY = 'import os\ndef f(a: int) -> str:\n    """Doc."""\n    return "# stays"\n'
LOG = "\n".join(f"2026-01-01 10:00:{i % 60:02} INFO stored item {i}" for i in range(100))


def chunked(*units: Unit, task: str = "", **ratios: float) -> Attempt:
    """Between a first request and a last message, which are protected."""
    config = ContextConfig(content_type_chunking=ContentTypeChunking(compress_ratios=CompressRatios(**ratios)))
    talk = (a_unit("begin", id="first"), *units, a_unit("go on", id="last"))
    state = a_state(*(replace(unit, timestamp=float(at)) for at, unit in enumerate(talk)), config=config, task=task)
    attempt = play(content_type_chunking, state)
    assert broken_laws(state, attempt) == []
    return attempt


def said(content: str, kind: Kind = Kind.MESSAGE, **fields: Any) -> Unit:
    return a_unit(content, id="said", role=Role.ASSISTANT, kind=kind, **fields)


def left(attempt: Attempt, unit_id: str = "said") -> str:
    return next(unit.content for unit in attempt.state.units if unit.id == unit_id)


def share(text: str, of: str) -> float:
    return KIT.tokens(text) / KIT.tokens(of)


@pytest.mark.parametrize(
    ("kind", "text", "ratio"),
    [
        (Kind.MESSAGE, PROSE, 0.5),  # the first plan's "text"
        (Kind.OTHER, PROSE, 0.6),
        (Kind.LOG, LOG, 0.4),
    ],
)
def test_words_and_logs_are_left_at_their_share_or_below(kind: Kind, text: str, ratio: float) -> None:
    kept = share(left(chunked(said(text, kind))), text)

    assert kept <= ratio
    assert kind is Kind.LOG or kept > ratio - 0.2


def test_a_log_of_lines_unlike_each_other_keeps_its_error_and_its_share() -> None:
    words = ("oak", "elm", "ash", "yew", "fir", "pine", "lime", "plum", "palm", "teak")
    lines = [f"10:00:00 INFO {a} meets {b} by the river" for a in words for b in words]
    lines[47] = "10:00:00 ERROR the bridge is broken"

    log = left(chunked(said("\n".join(lines), Kind.LOG)))

    assert lines[47] in log
    assert share(log, "\n".join(lines)) <= 0.4


def test_a_plan_is_left_word_for_word() -> None:
    plan = "## Plan\n" + PROSE

    assert left(chunked(said(plan, Kind.PLAN_REF), a_unit(PROSE, id="other"))) == plan


def test_code_loses_its_comments_and_still_parses() -> None:
    code = left(chunked(said(f"```python\n{CODE}```\n", Kind.CODE)))

    assert code == f"```python\n{TIDY}```\n"
    assert ast.dump(ast.parse(TIDY)) == ast.dump(ast.parse(CODE))


def test_code_above_its_share_is_not_cut_further() -> None:
    code = "```python\n" + "".join(f"value_{i} = compute({i})  # why\n" for i in range(50)) + "```\n"

    after = left(chunked(said(code, Kind.CODE)))

    assert share(after, code) > 0.5
    assert all(f"value_{i} = compute({i})\n" in after for i in range(50))


def test_a_result_of_code_without_a_fence_is_code() -> None:
    asked, answered = a_round("cat", CODE, id="r")

    assert left(chunked(asked, replace(answered, kind=Kind.CODE)), "r-t0") == TIDY


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PROSE, Kind.SUMMARY),
        (PROSE, Kind.PLACEHOLDER),
        (f"```python\n{TIDY}```", Kind.CODE),
        ("My name is Ann. I am allergic to nuts. Please book a table for two.", Kind.MESSAGE),
        ("word " * 50 + "end.", Kind.MESSAGE),
    ],
    ids=["a summary", "a placeholder", "code without comments", "a short message", "one long sentence"],
)
def test_what_cannot_or_must_not_be_shorter_is_left_word_for_word(content: str, kind: Kind) -> None:
    assert not chunked(said(content, kind)).changed


def test_a_message_is_taken_apart_at_its_fences() -> None:
    after = left(chunked(said(f"{PROSE}\n\n```python\n{CODE}```\n\n{PROSE[::-1]}")))

    before, code, behind = after.split("```")
    assert code == f"python\n{TIDY}"
    assert share(before, PROSE) <= 0.5
    assert behind.startswith("\n")


def test_words_around_code_in_a_unit_of_code_follow_the_rule_for_text() -> None:
    after = left(chunked(said(f"{PROSE}\n```python\n{TIDY}```\n", Kind.CODE)))

    assert f"```python\n{TIDY}```\n" in after
    assert share(after.partition("```")[0], PROSE) <= 0.5


def test_a_log_in_a_fence_follows_the_rule_for_logs() -> None:
    after = left(chunked(said(f"See:\n```\n{LOG}\n```\n")))

    assert "similar lines left out" in after
    assert share(after, LOG) <= 0.45


def test_json_stays_json() -> None:
    orders = json.dumps([{"id": f"ORD-{i:04}", "status": "shipped"} for i in range(100)])

    after = json.loads(left(chunked(*a_round("look", orders, id="r")), "r-t0"))

    assert after[0] == {"id": "ORD-0000", "status": "shipped"}
    assert len(after) < 20


def test_a_diff_keeps_its_changes() -> None:
    diff = "\n".join(["--- a/x", "+++ b/x", "@@ -1,90 +1,90 @@", *([" same old line"] * 90), "-old", "+new"])

    assert left(chunked(said(f"```diff\n{diff}\n```"))).endswith("\n-old\n+new\n```")


def test_code_of_the_first_priority_is_compressed_less_than_other_code() -> None:
    code = f"```python\n{CODE}```\n"
    important = said(code, Kind.CODE, priority=Priority.P1)
    other = a_unit(code, id="other", role=Role.ASSISTANT, kind=Kind.CODE)

    attempt = chunked(important, other)

    assert share(left(attempt), code) > share(left(attempt, "other"), code)


def test_what_the_task_asks_for_is_kept() -> None:
    assert "The stable is painted" in left(chunked(said(PROSE), task="Which colour has the stable?"))


def test_the_counter_of_the_whole_goes_down() -> None:
    units = (said(PROSE), *a_round("look", LOG))
    attempt = chunked(*units)

    assert attempt.changed
    assert attempt.state.estimated_tokens < KIT.tokens(PROSE) * 0.5 + KIT.tokens(LOG) * 0.4 + 10


def test_every_shortened_message_was_read_in_full() -> None:
    attempt = chunked(said(PROSE))

    assert [(read.source_id, read.read, read.total) for read in attempt.reads] == [("said", len(PROSE), len(PROSE))]


def test_nothing_is_dropped_and_no_model_is_asked() -> None:
    listening = Listening()
    state = a_state(a_unit("begin"), said(PROSE), *a_round("look", LOG), a_unit("go on"))

    attempt = play(content_type_chunking, state, listening)

    assert ids(attempt.state) == ids(state)
    assert listening.needs == []


def test_a_second_run_erodes_nothing() -> None:
    once = chunked(said(f"{PROSE}\n```python\n{CODE}```\n"), *a_round("look", LOG, PROSE))

    again = play(content_type_chunking, once.state)

    assert not again.changed
    assert again.note == "nothing could be said in fewer words"


@pytest.mark.parametrize(("kind", "name"), [(Kind.MESSAGE, "text"), (Kind.LOG, "log"), (Kind.CODE, "code")])
def test_a_share_of_one_means_word_for_word(kind: Kind, name: str) -> None:
    content = {"text": PROSE, "log": LOG, "code": f"```python\n{CODE}```"}[name]

    assert not chunked(said(content, kind), **{name: 1.0}).changed


def test_chinese_is_shortened_too() -> None:
    text = "".join(f"第{i}个房间今天刷成了新的颜色。" for i in range(20))

    assert share(left(chunked(said(text))), text) <= 0.5


@pytest.mark.parametrize("content", ["", " \n ", "```", "```\n```", "{", "[" * 5000, "\x00" * 100])
def test_odd_content_does_no_harm(content: str) -> None:
    assert left(chunked(said(content), a_unit(PROSE, id="p", role=Role.ASSISTANT))) == content


@pytest.mark.long
def test_the_cost_of_a_message_is_flat() -> None:
    def seconds(count: int) -> float:
        units = (a_unit(f"{PROSE} {i}", role=Role.ASSISTANT) for i in range(count))
        state = a_state(a_unit("begin"), *units, a_unit("go on"))
        begun = time.process_time()
        play(content_type_chunking, state)
        return (time.process_time() - begun) / count

    assert seconds(400) < 4 * seconds(50)
