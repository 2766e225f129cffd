"""What is said for all that comes is told from what is over with its answer."""

from __future__ import annotations

import pytest

from health.compaction.reading.ledger_patterns import EntryKind, kind_of_sentence
from health.services import compact_messages
from health.tokens.messages import count_messages

ANSWER = "I looked at it and changed the paragraph as you asked, here it is again with the other words in it. " * 8
LASTS = {
    "every case": ("Headings get a number in each chapter.", "凡是给客户的邮件先给我过目。"),
    "a time without an end": ("From today short answers, please.", "往后的图都画成黑白的。"),
    "whenever something happens": ("When I paste a log, quote the line.", "除非我说要表格，结论写成段落。"),
    "what is not wanted": ("Please no emojis in any letter.", "信里不要写缩写，全部写全称。"),
    "what is left alone": ("Leave the code in legacy/ as is.", "那个目录你别动，归运维管。"),
    "a limit": ("Tables have three columns at most, in all chapters.", "回答控制在五句话。"),
    "how somebody likes it": ("I'd rather be asked before you book.", "我习惯先看结论，你照这个写。"),
    "kinds of things": ("Comments in German please.", "注释统一用德语。"),
}
OVER = {
    "one thing": ("Don't bother with the third one, I found it.", "第二张图不要了，换成昨天那张。"),
    "one moment": ("This time only the table, no text.", "这次就别写那么细了，我马上要开会。"),
    "not yet": ("Do not restart it yet.", "先别改，帮我看看这个函数。"),
    "a story": ("Every single test passed when we tried it, great!", "每次都卡住，今天总算过了。"),
    "a request": ("Show me all the open orders.", "帮我把所有的订单列一下。"),
}


@pytest.mark.parametrize("sentence", [one for pair in LASTS.values() for one in pair])
def test_what_is_said_for_all_that_comes_is_a_rule_without_a_word_that_orders(sentence: str) -> None:
    assert kind_of_sentence(sentence) in (EntryKind.RULE, EntryKind.CONSTRAINT)


@pytest.mark.parametrize(
    "sentence",
    [
        "The school needs a form from each of us.",
        "If I ever buy a second card it won't be this year.",
        "It stays next to my bedroom.",
        "The gluten load is left alone until eight.",
        "我妈一点辣都不吃不了。",
        "如果老板再拖 我就直接辞职去卖烤冷面",
        "每天大概能学6个小时",
    ],
)
def test_one_sign_alone_makes_no_rule_of_what_is_told_of_life(sentence: str) -> None:
    assert kind_of_sentence(sentence) is not EntryKind.RULE


@pytest.mark.parametrize("sentence", ["The server has no internet.", "实验室没有打印机。"])
def test_what_there_is_not_binds_as_a_fact(sentence: str) -> None:
    assert kind_of_sentence(sentence) is EntryKind.CONSTRAINT


@pytest.mark.parametrize("sentence", [one for pair in OVER.values() for one in pair])
def test_what_points_at_one_thing_or_moment_is_no_rule(sentence: str) -> None:
    assert kind_of_sentence(sentence) is not EntryKind.RULE


def test_in_a_small_room_what_lasts_stands_and_what_was_for_once_leaves() -> None:
    said = [one for pair in zip(LASTS.values(), OVER.values(), strict=False) for sides in pair for one in sides]
    messages = [
        one for text in said for one in ({"role": "user", "content": text}, {"role": "assistant", "content": ANSWER})
    ]
    messages += [{"role": "user", "content": "Go on."}]

    outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") // 19, embedder="none")

    text = "\n".join(str(message["content"]) for message in outcome.messages)
    stand, rest = ({one for one in said if (one in text) is is_there} for is_there in (True, False))
    lasting = {one for pair in LASTS.values() for one in pair}
    assert lasting & set(said) <= stand
    assert len(rest - lasting) > len(stand - lasting)


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (
            "Small commits from here on, reviewing that 900 line monster took all evening.",
            "Open it, I changed line 12.",
        ),
        ("Each recipe takes less than thirty minutes, weekends excepted.", "Please fix the minutes of meeting 6."),
        ("每道菜别超过半小时，下个月的也照这个来。", "超过五百块的东西，下单之前先问我一声。"),
    ],
)
def test_a_word_in_common_takes_no_rules_force(rule: str, other: str) -> None:
    for said in ((rule, other), (other, rule)):
        messages = [
            one
            for text in said
            for one in ({"role": "user", "content": text}, {"role": "assistant", "content": ANSWER})
        ]
        messages += [{"role": "user", "content": "Go on."}]

        outcome = compact_messages(messages, limit_tokens=count_messages(messages, "") // 2, embedder="none")

        assert {rule, other} <= {message["content"] for message in outcome.messages}
