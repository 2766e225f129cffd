"""What the engine says about itself is said in the reader's language, from the moment it happens to the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from dialogs.common.errors import in_words
from dialogs.compaction.facts import facts_of
from dialogs.context.material import material
from dialogs.models import Dialog
from dialogs.turns.writes.messages import post_message
from health.compaction.compact import compact
from health.compaction.laws.floor import ADVICE, Contributor, Floor, diagnosis
from health.compaction.runner import run
from health.compaction.terms.outcome import Step
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.configured import context_config
from tests.builders import a_generation
from tests.dialogs.compaction_runs import a_run, a_step
from tests.dialogs.pages.views.pages import page

CHINESE = re.compile(r"[\u4e00-\u9fff]")
FLOOR = Floor(
    tokens=9000,
    shares=(
        Contributor(why=Why.P1, tokens=6000, unit_id="12"),
        Contributor(why=Why.PINNED, tokens=2000, unit_id="15"),
        Contributor(why=Why.OVERHEAD, tokens=1000),
    ),
)
TOO_SMALL = Reason(Why.TOO_SMALL, {"usable": 960, "window": 1200, "least": 1024})


def in_chinese(told: Any) -> str:
    with override("zh-hans"):
        return in_words(told)


def test_a_diagnosis_is_chinese_to_its_last_part() -> None:
    told = in_chinese(diagnosis(FLOOR, limit=5000))

    assert re.findall(r"[A-Za-z]+", told.replace("token", "")) == ["P"] * 3
    assert "≈6,000" in told
    assert "P1（12）≈6,000 token、已固定（15）≈2,000 token、工具定义和其他开销 ≈1,000 token" in told
    assert "降低部分 P1 消息的优先级，或取消固定一些消息，或少提供一些工具" in told


@pytest.mark.parametrize("why", ADVICE)
def test_whoever_is_to_blame_and_what_helps_have_chinese_words(why: Why) -> None:
    assert why is Why.P1 or CHINESE.search(in_chinese(Reason(why)))
    assert CHINESE.search(in_chinese(Reason(ADVICE[why])))


@pytest.mark.parametrize(
    ("reason", "chinese"),
    [
        (Reason(Why.PRUNING_NOT_USED, {"why": Reason(Why.SUMMARY_NOT_TRUSTED, {"why": Reason(Why.EMPTY)})}),
         "没有采用精简智能体的回答：有一条摘要不可信：它是空的。"),
        (Reason(Why.COHERENCE_UNDER, {"found": 0.41, "least": 0.7, "why": Reason(Why.OLDEST_DROPPED)}),
         "连贯性 0.41 低于 0.7：改为舍去最旧的内容"),
        (Reason(Why.LAW_BROKEN, {"why": Reason(Why.PROTECTED_REMOVED, {"name": "12"})}),
         "已拒绝，因为会违反一条规则：12 受保护，却被移除。"),
    ],
)  # fmt: skip
def test_a_reason_within_a_reason_is_chinese_too(reason: Reason, chinese: str) -> None:
    assert in_chinese(reason) == chinese
    assert in_chinese(reason.as_json()) == chinese


@pytest.mark.parametrize("text", ["What the provider said", "", "there is nothing older to prune"])
def test_the_sentence_of_an_old_row_is_shown_as_it_is(text: str) -> None:
    assert in_chinese(text) == text


def test_a_code_of_another_version_shows_the_sentence_that_was_stored_with_it() -> None:
    assert in_chinese({"code": "of_tomorrow", "args": {}, "text": "It was."}) == "It was."


def test_a_run_keeps_the_codes_of_its_end_its_steps_and_its_warnings(dialog: Dialog) -> None:
    begun_run = a_run(dialog, chain=["unheard_of"])
    begun = material(begun_run, context_config())

    _status, facts = facts_of(run(compact(begun.state, begun.kit, chain=begun_run.chain)), begun, begun_run)

    assert facts["why"]["code"] == "nothing_to_do"
    assert facts["reason"] == facts["why"]["text"]
    assert facts["warnings"][0]["code"] == "unknown_strategy"
    assert [(step["phase"], step["why"]) for step in facts["steps"]] == [("detection", {})]


def test_a_reader_of_chinese_reads_it_in_the_dialog(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="你好")
    dialog.refresh_from_db()
    a_generation(
        dialog,
        status="failed",
        error_code="context_compaction_failed",
        error_message=str(TOO_SMALL),
        why=TOO_SMALL.as_json(),
    )
    step = Step(
        phase="discard_low_rel",
        estimated_before=4500,
        estimated_after=4500,
        changed=False,
        why=Reason(Why.NO_TASK),
    )
    warning = Reason(Why.UNKNOWN_STRATEGY, {"name": "x"}).as_json()
    columns = columns_of(diagnosis(FLOOR, limit=5000))
    a_run(dialog, status="failed", steps=[step.as_json()], warnings=[warning], **columns)

    found = page(as_alice, f"/dialogs/{dialog.pk}/", headers={"accept-language": "zh-hans"})

    assert in_chinese(TOO_SMALL) in found.text
    assert found.text.count("仅 P1 就需要 ≈6,000 token") == 2
    assert "needs" not in found.text
    assert "usable" not in found.text


def test_what_an_old_run_said_stands_in_the_dialog_as_it_was(as_alice: Client, dialog: Dialog) -> None:
    said = "The chain came to 9,000 tokens, the limit is 5,000."
    steps = [a_step("truncate", 4500, 4500, note="nothing unprotected to drop")]
    a_run(dialog, status="failed", reason=said, steps=steps, warnings=["Unknown strategy: x"])

    found = page(as_alice, f"/dialogs/{dialog.pk}/", headers={"accept-language": "zh-hans"})

    assert said in found.text
