"""Counting with real vocabularies, offline, and what happens to texts that are made to break it."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from health.compaction.terms.ports import Counter, Grade
from health.tokens import counters, vocabularies
from health.tokens.counters import PIECE, RememberingCounter, count_text, counter_for
from health.tokens.families import Vocabulary
from health.tokens.vocabularies import by_tiktoken

ONE_OF_EACH = ("gpt-4", "gpt-4o", "llama-3", "llama-2", "mistral-7b-v0.1", "mistral-7b-v0.3", "mistral-nemo")
PANGRAM = "The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸跳过了懒狗。 def f(x): return x**2  # 1234567"
ODDITIES = (
    "Straße, naïve café — «Привет, мир!» 👩‍👩‍👧 don't WE'LL 3.14159\n\n\t    "
    "if (a != b) { return `x`; } <|im_end|></s>[INST]\r\n"
)
# Counted by the references: tiktoken's own definitions, llama-models' and mistral-common's tokenizers.
# Llama 2's are ours (its file was compared with llama-tokenizer-js once, 227 files of 227).
REFERENCE = {
    "gpt-4": [49, 61],
    "gpt-4o": [39, 54],
    "llama-3": [41, 57],
    "llama-2": [61, 76],
    "mistral-7b-v0.1": [55, 76],
    "mistral-7b-v0.3": [55, 76],
    "mistral-nemo": [47, 66],
}

each_vocabulary = pytest.mark.parametrize("model", REFERENCE)


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing opened before, nothing kept after."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    counters._sizes.cache_clear()
    _forget_counts()


def _forget_counts() -> None:
    """What was counted is measured again, with the vocabularies that are open."""
    counters._memory.cache_clear()
    counters._counter.cache_clear()


@each_vocabulary
def test_it_counts_as_the_reference_does_without_a_network(
    fresh: None, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)

    counter = counter_for(model)

    assert counter.count([PANGRAM, ODDITIES]) == REFERENCE[model]
    assert counter.grade is Grade.EXACT


@each_vocabulary
def test_a_batch_counts_every_text_as_if_it_were_alone(model: str) -> None:
    texts = ["", " ", "a", "\n\n", "Hello", " world", "!", PANGRAM, "'s", "\t x", "Hello", "  ", "\r\n/", "1", " 1"]

    _forget_counts()
    together = counter_for(model).count(texts)

    _forget_counts()
    assert together == [counter_for(model).count([text])[0] for text in texts]


@each_vocabulary
@pytest.mark.parametrize("odd", ["\ud800 half a pair", "\U0010fffe\U0010ffff", "a\x00b", "\U0010fffe"])
def test_what_no_text_should_hold_spoils_no_other_count(model: str, odd: str) -> None:
    _forget_counts()
    size, *others = counter_for(model).count([odd, "plain", "", "also plain", PANGRAM])

    assert size > 0
    _forget_counts()
    assert others == counter_for(model).count(["plain", "", "also plain", PANGRAM])
    assert others[-1] == REFERENCE[model][0]


@each_vocabulary
def test_a_control_token_in_a_text_is_ordinary_text(model: str) -> None:
    assert count_text("<|endoftext|><s></s><|eot_id|>[INST]", model) > 12


def test_an_empty_batch_and_an_empty_text_are_nothing() -> None:
    assert counter_for("gpt-4").count([]) == []
    assert count_text("", "gpt-4") == 0


@each_vocabulary
@pytest.mark.parametrize("pattern", ["a", " ", "\n", "^", "中", " \n", "aA", "\u0301"])
def test_megabytes_of_one_pattern_take_a_moment(model: str, pattern: str) -> None:
    text = pattern * (10_000_000 // len(pattern))
    counter = counter_for(model)
    counter.count(["warm"])

    started = time.perf_counter()
    size = counter.count([text])[0]

    assert time.perf_counter() - started < 5
    assert size > 10_000


@each_vocabulary
def test_a_long_text_is_cut_without_being_miscounted(model: str) -> None:
    paragraph = f"{PANGRAM}\n\nHe said “no”.   Then 3,141 more words followed; " * 40
    text = paragraph * (1 + 3 * PIECE // len(paragraph))
    sizes = counters._sizes(counters.family_of(model).vocabulary)
    assert sizes is not None

    in_pieces, whole = count_text(text, model), sizes([text])[0]

    assert len(text) > 3 * PIECE
    assert abs(in_pieces - whole) <= len(text) // PIECE


def test_what_was_counted_is_not_measured_again() -> None:
    asked: list[str] = []

    def sizes(texts: Sequence[str]) -> list[int]:
        asked.extend(texts)
        return [len(text) for text in texts]

    counter = RememberingCounter(name="ours", grade=Grade.EXACT, per_message=4, sizes=sizes)

    assert counter.count(["one", "three", "one"]) == [3, 5, 3]
    assert counter.count(["three", "fifteen", "one"]) == [5, 7, 3]
    assert asked == ["one", "three", "fifteen"]


def test_a_tokenizer_that_breaks_leaves_characters(caplog: pytest.LogCaptureFixture) -> None:
    def broken(texts: Sequence[str]) -> list[int]:
        raise RuntimeError("out of order")

    counter = RememberingCounter(name="broken", grade=Grade.EXACT, per_message=4, sizes=broken)

    assert counter.count(["Some plain text."])[0] in range(3, 8)
    assert "out of order" in caplog.text


def test_a_missing_vocabulary_leaves_gpts_marked_approximate(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _lose(Vocabulary.TEKKEN, monkeypatch)

    counter = counter_for("mistral-nemo")

    assert (counter.name, counter.grade, counter.per_message) == ("cl100k_base", Grade.APPROXIMATE, 5)
    assert counter.count([PANGRAM]) == [REFERENCE["gpt-4"][0]]


def test_a_corrupt_vocabulary_is_refused_and_named(
    fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spoiled = replace(vocabularies.SOURCES[Vocabulary.LLAMA3], sha256="0" * 64)
    monkeypatch.setitem(vocabularies.SOURCES, Vocabulary.LLAMA3, spoiled)

    with caplog.at_level(logging.WARNING):
        counter = counter_for("llama-3")

    assert counter.grade is Grade.APPROXIMATE
    assert "llama_models/llama3/tokenizer.model is not the file we know" in caplog.text


def test_without_any_vocabulary_characters_are_counted_and_called_rough(
    fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for vocabulary in Vocabulary:
        _lose(vocabulary, monkeypatch)

    counter = counter_for("gpt-4o")

    assert (counter.name, counter.grade) == ("characters", Grade.ROUGH)
    assert counter.count(["中文" * 50])[0] >= 100


def _lose(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(vocabularies.SOURCES[vocabulary], package="no_such_package")
    monkeypatch.setitem(vocabularies.SOURCES, vocabulary, gone)


def test_models_of_one_family_share_a_counter_and_it_is_the_ports() -> None:
    counter: Counter = counter_for("gpt-4o")

    assert counter is counter_for("gpt-4o-mini")
    assert counter_for("qwen3-8b").count([PANGRAM]) == counter_for("gpt-4").count([PANGRAM])


def test_a_vocabulary_is_in_memory_once() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}

    sizes = by_tiktoken(r"\w+|\W", ranks)

    assert ranks == {}
    assert sizes(["abc", "ab", "", "b c", "abcab"]) == [1, 1, 0, 3, 2]
