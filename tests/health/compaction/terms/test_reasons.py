"""A reason is a code with arguments: it says itself in English, and is stored and read again whole."""

from __future__ import annotations

import json

import pytest

from health.compaction.terms.reasons import BETWEEN, Reason, Why, columns_of, from_json, text_of
from tests.catalogue import FOLDER, read_source, translations

CHINESE = translations(read_source((FOLDER / "django.po").read_bytes()))
PINNED = Reason(Why.SHARE_OF, {"why": Reason(Why.PINNED), "name": "15", "tokens": 2000})
TOOLS = Reason(Why.SHARE, {"why": Reason(Why.OVERHEAD), "tokens": 1000})
WAYS = (Reason(Why.UNPIN), Reason(Why.FEWER_TOOLS))
DIAGNOSIS = Reason(Why.CANNOT_FREE_MORE, {"needed": 9000, "limit": 5000, "shares": (PINNED, TOOLS), "ways": WAYS})
TOLD = (
    "What must stay needs ≈9,000 tokens, the limit is 5,000. The largest: pinned (15) ≈2,000 tokens, tool schemas and "
    "other overhead ≈1,000 tokens. To go on, unpin messages, or offer fewer tools, or choose a larger limit or model."
)


@pytest.mark.parametrize("sentence", [*(why.value for why in Why), *BETWEEN.values()])
def test_every_sentence_has_chinese_words(sentence: str) -> None:
    assert CHINESE[(sentence,), None] != ("",)


def test_no_two_reasons_say_the_same() -> None:
    """Of two members with one sentence, Python's enumeration would make one."""
    assert len(Why) == len(Why.__members__)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason(Why.NOTHING_OLD), "nothing old to summarise"),
        (Reason(Why.REDUCED, {"tokens": 1639, "limit": 4096}), "Context reduced to ≈1,639 / 4,096 tokens."),
        (Reason(Why.TOO_LITTLE_GAIN, {"share": 0.0312}), "Nothing to gain: it would free ≈3%."),
        (Reason(Why.NOTHING_TO_DO, {"share": 1}), "Nothing to do: not above 100% of the limit."),
        (Reason(Why.UNDONE, {"found": 0.409, "least": 0.6}), "undone: coherence 0.41 is under 0.6"),
        (Reason(Why.NOTHING_TO_COMPACT, {"tokens": 800, "limit": 60_000}),
         "Nothing to compact: ≈800 of 60,000 tokens."),
        (Reason(Why.UNKNOWN_STRATEGY, {"name": "50% (%s)"}), "Unknown strategy: 50% (%s)"),
        (DIAGNOSIS, TOLD),
    ],
)  # fmt: skip
def test_a_reason_says_itself_in_english(reason: Reason, sentence: str) -> None:
    assert str(reason) == sentence


@pytest.mark.parametrize("reason", [Reason(Why.AT_GOAL), Reason(Why.COHERENCE, {"found": 0.5}), DIAGNOSIS])
def test_what_is_stored_is_read_again(reason: Reason) -> None:
    stored = json.loads(json.dumps(reason.as_json()))

    assert from_json(stored) == reason
    assert text_of(stored) == str(reason)


def test_a_row_keeps_the_sentence_beside_the_code() -> None:
    row = columns_of(Reason(Why.AT_GOAL))

    assert row == {"reason": "already at the goal", "why": {"code": "at_goal", "args": {}, "text": row["reason"]}}
    assert columns_of(None) == {"reason": "", "why": {}}


def test_a_number_that_json_has_no_word_for_is_stored_as_text() -> None:
    stored = json.dumps(Reason(Why.COHERENCE, {"found": float("nan")}).as_json(), allow_nan=False)

    assert str(from_json(json.loads(stored))) == "coherence nan"


@pytest.mark.parametrize(
    "stored",
    [
        {},
        None,
        "nothing old to summarise",
        {"code": "of_another_version", "args": {}, "text": "It was."},
        {"code": "at_goal", "args": {"tokens": 7}, "text": "It was."},
        {"code": "reduced", "args": {"tokens": 7, "limit": None}, "text": "It was."},
        {"code": "law_broken", "args": {"why": {"code": "unheard_of", "args": {}}}, "text": "It was."},
        {"code": "at_goal", "args": [], "text": "It was."},
        {"text": "It was."},
    ],
)
def test_what_this_version_does_not_know_is_no_reason_but_keeps_its_text(stored: object) -> None:
    assert from_json(stored) is None
    assert not isinstance(stored, dict) or text_of(stored) == stored.get("text", "")


@pytest.mark.parametrize("args", [{}, {"tokens": 7}, {"tokens": 7, "limit": 9, "share": 0.5}])
def test_arguments_must_fit_the_sentence(args: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="reduced takes"):
        Reason(Why.REDUCED, args)
