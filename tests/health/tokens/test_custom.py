"""A tokenizer named in the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from health.compaction.terms.ports import Grade
from health.tokens.counters import configured_counter, tokenizer_fault
from health.tokens.families import Vocabulary, family_of


@pytest.fixture
def words(tmp_path: Path) -> dict[str, Any]:
    """A tokenizer with a token for each word, as tokenizer.json has it."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": {
            "strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "?",
        },
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"?": 0, "hello": 1}, "unk_token": "?"},
    }  # fmt: skip


def saved(tokenizer: dict[str, Any], folder: Path) -> str:
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(tokenizer))
    return str(file)


def test_it_counts_with_the_file_that_is_named(words: dict[str, Any], tmp_path: Path) -> None:
    path = saved(words, tmp_path)

    counter = configured_counter("custom", path)

    assert tokenizer_fault("custom", path) == ""
    assert counter.grade is Grade.EXACT
    assert counter.count(["hello hello you", "hello"]) == [3, 1]


def test_one_that_truncates_is_refused_as_it_calls_long_texts_short(words: dict[str, Any], tmp_path: Path) -> None:
    cutting = {"max_length": 128, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    path = saved({**words, "truncation": cutting}, tmp_path)

    assert "cuts texts at 128 tokens" in tokenizer_fault("custom", path)
    assert configured_counter("custom", path).grade is Grade.APPROXIMATE


def test_a_custom_tokenizer_needs_a_path(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.json"
    garbage.write_text("{}")

    assert "needs the path" in tokenizer_fault("custom")
    assert "cannot be used" in tokenizer_fault("custom", str(tmp_path / "nowhere.json"))
    assert "cannot be used" in tokenizer_fault("custom", str(garbage))


def test_an_unsupported_tokenizer_is_an_error_of_the_configuration_only() -> None:
    assert tokenizer_fault("wordpiece") == "Unsupported tokenizer: wordpiece"
    assert configured_counter("wordpiece").grade is Grade.APPROXIMATE


@pytest.mark.parametrize("vocabulary", list(Vocabulary))
def test_a_vocabulary_can_be_named_itself(vocabulary: Vocabulary) -> None:
    assert tokenizer_fault(vocabulary) == ""
    assert family_of(vocabulary).vocabulary is vocabulary


def test_by_default_it_is_gpt_4s() -> None:
    assert configured_counter().name == "cl100k_base"
    assert tokenizer_fault("gpt-4") == ""
