"""With a question as task the messages that answer it are found, from outside: `compact_messages(task=…)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.knowledge import judged
from benchmarks.questions import of_made_chats
from benchmarks.recordings import Moment
from benchmarks.whole_messages import bm25_messages
from health.adapters import embeddings, minilm
from health.adapters.embeddings import Embeddings, StaticVectors
from health.compaction.choosing.worth import EMBEDDED_SHARE
from health.compaction.terms.ports import Embed, Embedded
from health.services import compact_messages
from health.tokens.messages import count_messages

CHATS = list(of_made_chats(8, 4, 16_000))


def found(moment: Moment, ratio: float, task: str) -> float:
    limit = moment.limit(ratio)
    outcome = compact_messages(moment.messages, limit_tokens=limit, task=task, embedder="none")
    return judged(moment, outcome.messages, limit=limit)["know"] or 0


@pytest.mark.parametrize("ratio", [0.25, 0.1])
def test_answers_are_found_as_well_as_by_ranking_whole_messages(ratio: float) -> None:
    ours = fmean(found(moment, ratio, moment.question) for moment in CHATS)
    limits = [(moment, moment.limit(ratio)) for moment in CHATS]
    ranked = fmean(judged(moment, bm25_messages(moment, limit), limit=limit)["know"] or 0 for moment, limit in limits)
    assert ours >= ranked


def test_a_question_finds_more_than_no_question() -> None:
    asked, unasked = (fmean(found(one, 0.1, task) for one, task in tasks) for tasks in both())
    assert asked > unasked + 0.1


def both() -> tuple[list[tuple[Moment, str]], list[tuple[Moment, str]]]:
    return [(moment, moment.question) for moment in CHATS], [(moment, "") for moment in CHATS]


def test_a_message_that_answers_is_kept_whole() -> None:
    answer = "The spare key for the boathouse hangs behind the barometer, left of the door, on a green ribbon."
    talk = [f"We walked along pier {at} again, the wind was {at} knots, and nobody minded much." for at in range(80)]
    said = [*talk[:30], answer, *talk[30:]]
    messages = [{"role": "user" if at % 2 else "assistant", "content": text} for at, text in enumerate(said)]
    limit = count_messages(messages, "") // 10

    kept = compact_messages(messages, limit_tokens=limit, task="Where is the boathouse key?", embedder="none")

    assert answer in [message["content"] for message in kept.messages]


def asking(question: str, answer: str) -> list[dict[str, str]]:
    """A long chat in which somebody else said the answer once; the newest message is the question."""
    talk = [f"We walked along pier {at} again, the wind was {at} knots, and nobody minded much." for at in range(81)]
    said = [*talk[:31], answer, *talk[31:], question]
    return [{"role": "user" if at % 2 else "assistant", "content": text} for at, text in enumerate(said, start=1)]


ANSWERED = [
    ("Where is the boathouse key?", "The spare key for the boathouse hangs behind the barometer on a green ribbon."),
    ("Which paint did we use for the hull?", "For the hull they took the grey paint of the old yard, two coats."),
    ("船库的钥匙在哪里？", "船库的备用钥匙挂在气压计后面，系着一条绿丝带。"),
]


@pytest.mark.parametrize(("question", "answer"), ANSWERED)
def test_what_the_newest_message_asks_for_is_kept_without_a_task(question: str, answer: str) -> None:
    messages = asking(question, answer)
    limit = count_messages(messages, "") // 8

    kept = compact_messages(messages, limit_tokens=limit, embedder="none")

    assert answer in [message["content"] for message in kept.messages]


def test_a_question_that_was_answered_already_asks_for_nothing_more() -> None:
    question, answer = ANSWERED[0]
    open_talk = asking(question, answer)
    limit = count_messages(open_talk, "") // 8
    answered = [*open_talk, {"role": "assistant", "content": "It hangs there still."}]

    kept = compact_messages(answered, limit_tokens=limit, embedder="none")

    assert answer not in [message["content"] for message in kept.messages]


def test_no_model_is_asked_where_only_the_newest_message_says_what_it_is_for() -> None:
    messages = asking(*ANSWERED[0])

    def embed(need: Embed) -> Embedded:
        raise AssertionError(need)

    kept = compact_messages(messages, limit_tokens=count_messages(messages, "") // 8, embedder=embed)

    assert not kept.embedder


def test_an_answer_that_takes_most_of_a_small_room_is_kept_whole() -> None:
    answer = (
        "Of the boathouse there are four keys. The spare one hangs behind the barometer, left of the door, on a green "
        "ribbon. Two are with the harbour master, who lends them from seven until noon, against a deposit of 15 euros "
        "each. The last one opens only the side door, and nobody has seen it since the regatta in June, so do not "
        "promise it to the guests who come with the kayaks on Saturday."
    )
    talk = [f"We walked along pier {at} again, the wind was {at} knots, and nobody minded much." for at in range(60)]
    said = [*talk[:30], answer, *talk[30:]]
    messages = [{"role": "user" if at % 2 else "assistant", "content": text} for at, text in enumerate(said)]
    room = 190

    kept = compact_messages(messages, limit_tokens=room, task="Where are the boathouse keys?", embedder="none")

    assert count_messages([{"role": "user", "content": answer}], "") > 0.4 * room
    assert answer in [message["content"] for message in kept.messages]


def test_only_messages_that_matter_are_embedded() -> None:
    seen: list[Embed] = []

    def embed(need: Embed) -> Embedded:
        seen.append(need)
        return Embedded(vectors=np.eye(len(need.texts), dtype=np.float32), name="by hand")

    moment = CHATS[0]
    compact_messages(moment.messages, limit_tokens=moment.limit(0.25), task=moment.question, embedder=embed)

    (need,) = seen
    texts = need.texts[need.queries :]
    size = count_messages([{"role": "user", "content": "\n".join(texts)}], "")
    assert 0 < size <= 1.1 * EMBEDDED_SHARE * moment.tokens
    found_by_words = {message["content"] for message in bm25_messages(moment, moment.fixed_tokens + 200)}
    assert not found_by_words & set(texts)


def absent() -> StaticVectors:
    raise OSError("not installed")


def hanging() -> StaticVectors:
    Event().wait()
    raise AssertionError


class StandsStill(StaticVectors):
    name = minilm.NAME

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.needs = after

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.needs -= 1
        return hanging() if self.needs < 0 else super().encode(texts)  # type: ignore[return-value]


@pytest.mark.parametrize("load", [absent, hanging, StandsStill, lambda: StandsStill(after=1)])
def test_the_outcome_says_that_minilm_was_not_used(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[], StaticVectors]
) -> None:
    there = StaticVectors()
    alone = Embeddings({"minilm": load, "static": lambda: there})
    monkeypatch.setattr(embeddings, "_process", lambda: alone)
    monkeypatch.setattr(embeddings, "MOST_SECONDS", 0.5)
    moment = CHATS[0]

    def warnings(task: str) -> list[str]:
        return [*map(str, compact_messages(moment.messages, limit_tokens=moment.limit(0.25), task=task).warnings)]

    assert [one for one in warnings(moment.question) if one.startswith("MiniLM is absent or slow here")]
    assert not warnings("")
