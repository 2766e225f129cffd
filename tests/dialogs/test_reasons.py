"""What the engine says about itself is said in the reader's language, and no estimate goes without its mark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.translation import override

from dialogs.compacting import guard
from dialogs.driver.guarding import RESULT_TOO_LARGE
from dialogs.models import Dialog
from dialogs.reasons import in_words
from dialogs.services.messages import post_message
from health.compaction.floor import ADVICE, P1, Floor, Share, diagnosis
from tests.builders import a_generation
from tests.dialogs.compaction_runs import a_run, a_step
from tests.dialogs.views.pages import page
from tests.imports import Module, our_modules, within

# Where the engine hands over a sentence: the last argument of a call of these, or an argument of such a name.
SAYING = {"unchanged", "Rejected"}
NAMES = {"note", "reason", "source"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
FLOOR = Floor(
    tokens=9000,
    shares=(
        Share(why=P1, tokens=6000, unit_id="12"),
        Share(why="pinned", tokens=2000, unit_id="15"),
        Share(why="tool schemas and other overhead", tokens=1000),
    ),
)


def sentences(module: Module) -> Iterator[str]:
    """Texts that the module's code says, with 7 for what is put into them."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            yield from (_text(one.value) for one in node.keywords if one.arg in NAMES)
            yield from (_text(one) for one in node.args[-1:] if name in SAYING)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)


ENGINE = [module for module in our_modules() if within(module.name, ("health.compaction", "health.limits"))]
SAID = sorted({text for module in ENGINE for text in sentences(module) if re.search(r"[a-z]{2}", text)})


def in_chinese(text: str) -> str:
    with override("zh-hans"):
        return in_words(text)


@pytest.mark.parametrize("text", SAID)
def test_whatever_the_engine_says_has_chinese_words(text: str) -> None:
    assert CHINESE.search(in_chinese(text))


def test_the_engine_is_heard() -> None:
    """Else the test above would pass with nothing to look at."""
    assert len(SAID) > 40
    assert "nothing old to summarise" in SAID


@pytest.mark.parametrize("text", ["What the provider said", "", "52 tokens"])
def test_a_text_that_nobody_knows_is_shown_as_it_is(text: str) -> None:
    assert in_chinese(text) == text


def test_a_diagnosis_is_chinese_to_its_last_part() -> None:
    told = in_chinese(diagnosis(FLOOR, limit=5000))

    assert re.findall(r"[A-Za-z]+", told.replace("token", "")) == ["P"] * 3
    assert "≈6,000" in told
    assert "P1（12）≈6,000 token、已固定（15）≈2,000 token、工具定义和其他开销 ≈1,000 token" in told
    assert "降低部分 P1 消息的优先级，或取消固定一些消息，或少提供一些工具" in told


@pytest.mark.parametrize("why", ADVICE)
def test_whoever_is_to_blame_and_what_helps_have_chinese_words(why: str) -> None:
    assert why == P1 or CHINESE.search(in_chinese(why))
    assert CHINESE.search(in_chinese(ADVICE[why]))


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Nothing to gain: it would free 3%.", "Nothing to gain: it would free ≈3%."),
        ("The chain came to 9,000 tokens, the limit is 5,000. Nothing was changed.",
         "The chain came to ≈9,000 tokens, the limit is 5,000. Nothing was changed."),
        ("52% freed, 1002 to 507 tokens. Greetings went.", "≈52% freed, ≈1002 to ≈507 tokens. Greetings went."),
        ("What must stay needs 9,000 tokens, the limit is 5,000. The largest: pinned (15) 2,000 tokens. "
         "To go on, unpin messages, or choose a larger limit or model.",
         "What must stay needs ≈9,000 tokens, the limit is 5,000. The largest: pinned (15) ≈2,000 tokens. "
         "To go on, unpin messages, or choose a larger limit or model."),
    ],
)  # fmt: skip
def test_an_old_runs_estimates_get_their_mark(stored: str, shown: str) -> None:
    assert in_words(stored) == shown
    assert CHINESE.search(in_chinese(stored))


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("The pruning agent's answer was not used: a summary cannot be trusted: it is empty.",
         "没有采用精简智能体的回答：有一条摘要不可信：它是空的。"),
        ("coherence 0.41 is under 0.7: the oldest were dropped instead", "连贯性 0.41 低于 0.7：改为舍去最旧的内容"),
        ("coherence 0.83. The model's summary was not used: no model answered.",
         "连贯性 0.83。没有采用模型的摘要：没有模型作答。"),
        ("Refused, for a law would be broken: 12 is protected and was removed.",
         "已拒绝，因为会违反一条规则：12 受保护，却被移除。"),
    ],
)  # fmt: skip
def test_a_reason_within_a_reason_is_chinese_too(text: str, chinese: str) -> None:
    assert in_chinese(text) == chinese


def test_a_request_that_cannot_be_made_is_explained_in_chinese() -> None:
    too_large = RESULT_TOO_LARGE.format(tokens=6100, limit=5000, room=3900)
    too_small = guard._too_small(1200, 240)

    assert re.search(r"≈6,100.*5,000.*≈3,900", in_chinese(too_large))
    assert re.search(r"1,200.*960.*1,024", in_chinese(too_small))


def test_a_reader_of_chinese_reads_it_in_the_dialog(client: Client, alice: User, dialog: Dialog) -> None:
    client.force_login(alice)
    post_message(dialog=dialog, content="你好")
    dialog.refresh_from_db()
    a_generation(
        dialog,
        status="failed",
        error_code="context_compaction_failed",
        error_message=RESULT_TOO_LARGE.format(tokens=6100, limit=5000, room=3900),
    )
    note = "there is no task to be relevant to"
    steps = [a_step("discard_low_rel", 4500, 4500, note=note)]
    a_run(dialog, status="failed", reason=diagnosis(FLOOR, limit=5000), steps=steps, warnings=["Unknown strategy: x"])

    found = page(client, f"/dialogs/{dialog.pk}/", headers={"accept-language": "zh-hans"})

    assert "工具结果（≈6,100 token）超出了模型的上下文上限" in found.text
    assert found.text.count("仅 P1 就需要 ≈6,000 token") == 2
    assert "needs" not in found.text
