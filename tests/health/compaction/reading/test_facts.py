"""What counts as a fact, and what binds. English and Chinese."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.compaction.reading.facts import Fact, FactKind, facts, is_binding, normal


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def told(text: str) -> list[tuple[str, str]]:
    return [(fact.kind.value, fact.text) for fact in facts(text)]


IDENTIFIERS = lines("""
    ORD-48213
    user_id
    getUser()
    camelCase
    API_KEY
    #1234
    v1.2.3
    3.11.7
    9e1f3ef
    --limit
    $HOME
    gpt-4o
    UTF-8
    @alice
    health.services.compact_messages
    192.168.0.1
    550e8400-e29b-41d4-a716-446655440000
""")
PATHS = lines("""
    health/compaction/reading/facts.py:120
    /etc/hosts
    ~/notes.md
    ./run.sh
    ../b
    config.py
    src/
    C:\\Users\\bob\\x.txt
    tests/a.py:3:7
""")
URLS = lines("""
    https://shop.example.com/o/48213?x=1
    ftp://a.b/c
    bob.lee@example.com
    example.org
""")
NUMBERS = lines("""
    $1,299.00
    45 %
    3 GB
    12:30
    2026-11-21
    2026-11-21T12:30:00Z
    21.11.2026
    3pm
    May 17, 2026
    17 May
    10-15 minutes
    2 people
    8080
    +1 555 123 4567
    -5 °C
    €40
    三百元
    5月17日
    3点半
    百分之二十
    2026年5月
    十五号
    700元
""")
HOSTILE = lines("""
    a
    A
    aA
    a.
    a/
    1
    1,
    1.
    1-
    a-
    a@
    `
    `a
    /
    $
    -
    ~
    ..
    百
    error
    http://
    f
    0a
    E
    {"
    a_
""")
COMMANDS = ("$ pip install x==1.2", "`git commit -m x`", "`pytest tests/a -q`")
ERRORS = (
    "ValueError: bad input 12",
    "Traceback (most recent call last)",
    "error: cannot find it",
    "ERROR [db] connection refused",
    "FAILED tests/test_a.py::test_b",
    "java.lang.NullPointerException: x",
    "错误：文件不存在",
    "报错信息: 超时",
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((FactKind.IDENTIFIER, text) for text in IDENTIFIERS),
        *((FactKind.PATH, text) for text in PATHS),
        *((FactKind.URL, text) for text in URLS),
        *((FactKind.NUMBER, text) for text in NUMBERS),
        *((FactKind.COMMAND, text) for text in COMMANDS),
        *((FactKind.ERROR, text) for text in ERRORS),
    ],
)
def test_a_fact_is_found_with_its_kind_alone_on_a_line_and_in_a_sentence(kind: FactKind, text: str) -> None:
    bare = text.strip("`")
    assert told(text) == [(kind.value, bare)]
    if kind not in (FactKind.ERROR, FactKind.COMMAND):
        assert (kind.value, bare) in told(f"We saw {text}, and then (again) more.")


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox, and the well-known dog.",
        "and/or, he/she, e.g. this, i.e. that",
        "1. First\n2. Second\n  3) Third",
        "It's --- fine ... really!",
        "I don't know; it is 5.",
        "这十分重要，一个人就可以，万一不行再说。",
        "API and JSON are words",
        "",
        "x" * 5000,
        "aB" * 5000,
        r'{"who": "Tom\u00e1s", "said": "\u4e2d\u6587"}',
    ],
)
def test_plain_talk_list_numbers_and_blobs_are_no_facts(text: str) -> None:
    assert told(text) == []


def test_a_full_stop_after_a_fact_is_not_part_of_it() -> None:
    text = "See https://a.example/b. Open src/x.py. Use ORD-48213. Pay $5.00. Read /etc/hosts."
    assert [fact.text for fact in facts(text)] == [
        "https://a.example/b",
        "src/x.py",
        "ORD-48213",
        "$5.00",
        "/etc/hosts",
    ]


def test_chinese_text_needs_no_blanks_around_facts() -> None:
    assert told("订单ORD-48213在2026-11-21前付款，总价1,299元，见https://a.example/x。") == [
        ("identifier", "ORD-48213"),
        ("number", "2026-11-21"),
        ("number", "1,299元"),
        ("url", "https://a.example/x"),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$1,299.00", "$ 1299.00"),
        ("45 %", "45%"),
        ("3 GB", "3gb"),
        ("￥300", "¥300"),
        ("./run/a.sh", "run/a.sh"),
        ("https://A.example/b/", "https://a.example/b"),
        ("$ git status -s", "`git status -s`"),
    ],
)
def test_two_spellings_of_one_fact_are_equal_when_normal(one: str, other: str) -> None:
    assert normal(facts(one)[0]) == normal(facts(other)[0])


def test_identifiers_that_differ_in_case_stay_different() -> None:
    assert normal(facts("user_id")[0]) != normal(facts("USER_ID")[0])


@given(st.text(alphabet=st.sampled_from("aZ0_-./:@#$%`\n \\E百元5月错误，。(é"), max_size=300))
def test_facts_are_slices_of_the_text_in_order_without_overlap(text: str) -> None:
    found = facts(text)
    assert all(text[fact.start : fact.end] == fact.text and fact.text for fact in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize("unit", [*HOSTILE, " ", "\n ", "1 ", '\\" '])
def test_hostile_text_costs_time_in_proportion_to_its_length(unit: str) -> None:
    """A quadratic scan of 400,000 characters would take minutes."""
    started = time.perf_counter()
    facts(unit * (400_000 // len(unit)))
    assert time.perf_counter() - started < 15


BINDING = lines("""
    You must never share the key.
    Do not call me before 9.
    Always reply in French.
    Please don't use npm.
    - Never push to main
    Only use the sandbox.
    Use only the sandbox.
    At most 3 files.
    No more than 200 words.
    A receipt is required.
    Make sure that tests pass.
    Under no circumstances delete it.
    Be sure to save.
    The assistant never shares keys.
    Copying is forbidden.
    When unsure, do not guess.
    At least two people sign.
    We always use tabs.
    You cannot edit this file.
    Remember to save.
    必须使用中文。
    不要删除文件。
    禁止联网
    务必备份。
    一定要先测试
    只能用 Python
    始终用制表符
    永远不要提交密码
    切勿外传
    记得每天备份
    你不能修改这个文件
    不得外传
""")
LOOSE = lines("""
    You could never do that.
    I never liked it.
    It never worked.
    Don't you think so?
    Must I do it?
    I don't know.
    I only have a cat.
    It's only a draft.
    Never mind.
    They don't work.
    I've always wondered.
    We never shipped it.
    It must have rained.
    I remember that day.
    At least it works.
    Don't worry about it.
    Only three came.
    I did it to avoid trouble.
    必须这样吗？
    必须这样吗
    我记得昨天下雨了
    不要紧
    我不能打开它
""")


@pytest.mark.parametrize("sentence", BINDING)
def test_orders_and_bans_bind(sentence: str) -> None:
    assert is_binding(sentence)


@pytest.mark.parametrize("sentence", LOOSE)
def test_questions_stories_and_plain_talk_do_not_bind(sentence: str) -> None:
    assert not is_binding(sentence)


def test_a_fact_says_where_it_stands() -> None:
    assert facts("Order ORD-1 now") == [Fact(FactKind.IDENTIFIER, "ORD-1", 6, 11)]
