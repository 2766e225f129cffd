"""Answers `Embed` needs: with MiniLM, or for a whole run with static vectors if MiniLM is absent or slow. One run never
gets both. The speed of MiniLM is measured here, and vectors are cached; clocks are passed as `now`, in seconds.

A run gets one answerer from `embedder()`. A model is loaded once per process, at the first text, and used by one thread
at a time. Both happen in threads of their own, for which a run waits some seconds in sum; what they make later is
cached, by embedder and text, for the next run.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Event, Lock, Thread
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from health.adapters.minilm import MiniLM, both_ends, check, folder
from health.compaction.terms.ports import Embed, Embedded

Row = NDArray[np.float32]

# The most milliseconds for one text. A slow model is tried again after a while, and must then be under the second.
SLOW_MS, FAST_MS = 100.0, 80.0
RETRY_SECONDS = 600.0
# A verdict needs the first number of texts, or the seconds with fewer, and is about the newest texts, the second
# number. No run waits longer than the seconds for vectors, in sum; the last fifth of them is static vectors'.
FEWEST_MEASURED, MOST_MEASURED, MOST_SECONDS = 16, 256, 10.0
STATIC_SHARE = 0.2
logger = logging.getLogger(__name__)

Embedder = Callable[[Embed], Embedded | None]

DEFAULT = "minilm"
# The names that a configuration may use, with the embedder of each.
TYPES = {"minilm": "minilm", "static": "static", "glove": "static"}

QUERY_SECONDS = 300.0
MOST_CACHED, MOST_QUERIES = 20_000, 1_000
# Texts embedded between two looks at the clock.
SLICE = 8


@dataclass
class Cache:
    """The vectors of texts: at most `most`, the least recently used go first; each for `seconds` after it was made."""

    most: int
    seconds: float = float("inf")
    _rows: OrderedDict[bytes, tuple[float, Row]] = field(default_factory=OrderedDict)

    def get(self, key: bytes, now: float) -> Row | None:
        made, row = self._rows.get(key, (0.0, None))
        if row is None or now - made >= self.seconds:
            return None
        self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Row, now: float) -> None:
        self._rows[key] = (now, row)
        self._rows.move_to_end(key)
        if len(self._rows) > self.most:
            self._rows.popitem(last=False)


@dataclass
class Pace:
    """Whether a model takes less than 100 ms a text: judged over many texts, with hysteresis."""

    slow_since: float | None = None
    _measured: deque[tuple[int, float]] = field(default_factory=deque)

    def note(self, texts: int, seconds: float, now: float) -> bool:
        """Add a measurement. Returns whether the model is slow."""
        self._measured.append((texts, seconds))
        while self._texts - self._measured[0][0] >= MOST_MEASURED:
            self._measured.popleft()
        if self._texts < FEWEST_MEASURED and self._seconds <= MOST_SECONDS:
            return False
        bound = SLOW_MS if self.slow_since is None else FAST_MS
        self.slow_since = now if self.milliseconds > bound else None
        return self.slow_since is not None

    @property
    def milliseconds(self) -> float:
        """The mean for one text, 0 without measurements."""
        return 1000 * self._seconds / (self._texts or 1)

    def may_begin(self, now: float) -> bool:
        """Whether a new run may use the model. A slow one is measured anew after a while."""
        if self.slow_since is None:
            return True
        if now - self.slow_since < RETRY_SECONDS:
            return False
        self._measured.clear()
        return True

    @property
    def _texts(self) -> int:
        return sum(texts for texts, _ in self._measured)

    @property
    def _seconds(self) -> float:
        return sum(seconds for _, seconds in self._measured)


class UnsupportedEmbedder(ValueError):
    """No embedder has this name."""


class Model(Protocol):
    @property
    def name(self) -> str: ...
    def encode(self, texts: Sequence[str]) -> Row:
        """One row of length 1 for each text."""
        ...


class TooSlow(Exception):
    """The model is slow before a run got anything from it, or far too slow later."""


def canonical(kind: str) -> str:
    """The embedder that a configuration names. Raises UnsupportedEmbedder if there is none."""
    if kind not in TYPES:
        raise UnsupportedEmbedder(f"Unsupported embedder: {kind}")
    return TYPES[kind]


def embedder(kind: str) -> Embedder:
    """The answerer for one run. Raises UnsupportedEmbedder."""
    return _process().run(kind)


def unused_seconds() -> float:
    """For how long no run of this process has asked for a model."""
    return _process().unused_seconds


@cache
def _process() -> Embeddings:
    return Embeddings({"minilm": MiniLM, "static": StaticVectors})


class Embeddings:
    """One process's models, with their caches and pace. `load` has each model's constructor, which may raise."""

    def __init__(self, load: Mapping[str, Callable[[], Model]], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._load, self._clock = load, clock
        self._models: dict[str, Model] = {}
        # When the loading of each began, and whether it has ended.
        self._loading: dict[str, tuple[float, Event]] = {}
        self._kept, self._queries = Cache(MOST_CACHED), Cache(MOST_QUERIES, QUERY_SECONDS)
        self._pace = Pace()
        # Held for moments, for caches and pace. A model's own is held while it embeds, since when stands beside it.
        self._lock = Lock()
        self._in_use = {kind: Lock() for kind in load}
        self._since: dict[str, float] = {}
        self._used_at = clock()

    @property
    def unused_seconds(self) -> float:
        return self._clock() - self._used_at

    def run(self, kind: str = DEFAULT) -> Embedder:
        """An embedder for one run: the same model for all texts, and None after the first failure."""
        return RunEmbedder(self, canonical(kind), self._clock)

    def choose(self, kind: str, *, until: float) -> str | None:
        """The model asked for if it is there by `until`, else static vectors if these are there soon, else None.
        Strategies then use lexical vectors."""
        now = self._used_at = self._clock()
        with self._lock:
            stands_still = now - self._since.get(kind, now) > MOST_SECONDS
            may_begin = kind != "static" and not stands_still and self._pace.may_begin(now)
        if may_begin and self._is_loaded(kind, until):
            return kind
        return "static" if self._is_loaded("static", self._clock() + STATIC_SHARE * MOST_SECONDS) else None

    def embed(self, kind: str, need: Embed, *, first: bool, until: float) -> Embedded:
        """The vectors, if possible from the caches. Raises TooSlow: at a run's first need soon, later only late."""
        answer: Future[Embedded] = Future()
        work = partial(self._embedded, kind, need, first=first, until=until)
        Thread(target=_settle, args=[answer, work], name=f"embeds-{kind}", daemon=True).start()
        try:
            return answer.result(max(0.0, until - self._clock()))
        except TimeoutError:
            raise TooSlow(f"{kind} took longer than a run waits for vectors") from None

    def _embedded(self, kind: str, need: Embed, *, first: bool, until: float) -> Embedded:
        with self._alone(kind, until):
            model = self._models[kind]
            keys = [_key(model, text) for text in need.texts]
            known = {key: self._known(key) for key in keys}
            missing = {key: text for key, text in zip(keys, need.texts, strict=True) if known[key] is None}
            queries = set(keys[: need.queries])
            for key, row in self._made(kind, missing, first=first, until=until):
                known[key] = row
                with self._lock:
                    (self._queries if key in queries else self._kept).put(key, row, self._clock())
        rows = [made for key in keys if (made := known[key]) is not None]
        return Embedded(vectors=np.stack(rows) if rows else np.zeros((0, 1), np.float32), name=model.name)

    def _made(
        self, kind: str, missing: Mapping[bytes, str], *, first: bool, until: float
    ) -> Iterator[tuple[bytes, Row]]:
        """Compute the missing vectors, in batches of texts of about equal length, as long as somebody waits."""
        keys = sorted(missing, key=lambda key: len(missing[key]))
        for start in range(0, len(keys), SLICE):
            part = keys[start : start + SLICE]
            begin = self._clock()
            rows = self._models[kind].encode([missing[key] for key in part])
            # Copies, as a cached row would keep the whole array in memory.
            yield from zip(part, (row.copy() for row in rows), strict=True)
            is_slow = kind == "minilm" and self._noted(len(part), self._clock() - begin)
            if start + SLICE < len(keys) and (self._clock() > until or (is_slow and first)):
                raise TooSlow(f"{kind} takes {1000 * (self._clock() - begin) / len(part):.0f} ms a text")

    def _noted(self, texts: int, seconds: float) -> bool:
        with self._lock:
            return self._pace.note(texts, seconds, self._clock())

    def _known(self, key: bytes) -> Row | None:
        with self._lock:
            now = self._clock()
            kept = self._kept.get(key, now)
            return kept if kept is not None else self._queries.get(key, now)

    @contextmanager
    def _alone(self, kind: str, until: float) -> Iterator[None]:
        """One thread at a time. Raises TooSlow if another has the model for long."""
        if not self._in_use[kind].acquire(timeout=max(0.0, until - self._clock())):
            raise TooSlow(f"another run uses {kind} for long")
        try:
            self._since[kind] = self._clock()
            yield
        finally:
            del self._since[kind]
            self._in_use[kind].release()

    def _is_loaded(self, kind: str, until: float) -> bool:
        """Whether the model is there: it is loaded at its first use in a thread of its own. If it is not there soon, a
        later run may have it."""
        since, is_over = self._loading.setdefault(kind, (self._clock(), begun := Event()))
        if is_over is begun:
            Thread(target=self._load_it, args=[kind, begun], name=f"loads-{kind}", daemon=True).start()
        if not is_over.wait(max(0.0, min(since + MOST_SECONDS, until) - self._clock())):
            logger.warning("Embedder %s is still being loaded: this run goes without.", kind)
        return kind in self._models

    def _load_it(self, kind: str, is_over: Event) -> None:
        try:
            self._models[kind] = self._load[kind]()
        except BaseException as error:  # a broken torch, or a library written in Rust, may raise anything
            logger.warning("Embedder %s is not used: %s", kind, error)
        finally:
            is_over.set()


class RunEmbedder:
    """Answers all needs of one run with one embedder, as vectors of two cannot be compared."""

    def __init__(self, embeddings: Embeddings, kind: str, clock: Callable[[], float]) -> None:
        self._embeddings, self._kind, self._clock = embeddings, kind, clock
        self._used: str | None = None
        self._began = self._failed = False
        self._seconds = (1 - STATIC_SHARE) * MOST_SECONDS

    def __call__(self, need: Embed) -> Embedded | None:
        if self._failed:
            return None
        began = self._clock()
        try:
            answer = self._answer(need, until=began + self._seconds)
        except Exception as error:  # the run goes on with lexical vectors
            logger.warning("Embedding failed; the rest of this run goes without: %s", error)
            answer = None
        self._began, self._failed = True, answer is None
        self._seconds -= self._clock() - began
        return answer

    def _answer(self, need: Embed, *, until: float) -> Embedded | None:
        if not self._began:
            self._used = self._embeddings.choose(self._kind, until=until)
        if self._used is None:
            return None
        try:
            return self._embeddings.embed(self._used, need, first=not self._began, until=until)
        except TooSlow as error:
            if self._began:
                raise
            logger.info("%s: static vectors serve this run.", error)
        self._used = self._embeddings.choose("static", until=until)
        last = self._clock() + STATIC_SHARE * MOST_SECONDS
        return self._embeddings.embed(self._used, need, first=False, until=last) if self._used else None


def _settle(answer: Future[Embedded], work: Callable[[], Embedded]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:  # a library written in Rust may raise anything
        answer.set_exception(error)


def _key(model: Model, text: str) -> bytes:
    return hashlib.sha256(f"{model.name}\n{text}".encode(errors="surrogatepass")).digest()


# Static word vectors of wordllama, averaged over a text: a hundred times faster than MiniLM, and less precise. Used if
# that is not installed or too slow. The weights are read without wordllama's code, which looks for its tokenizer in
# another folder.
NAME = "wordllama"
PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
SHA256 = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}


class StaticVectors:
    """The loaded vectors: 32,000 pieces of words, 256 numbers each, 33 MB."""

    name = NAME

    def __init__(self) -> None:
        path = folder(PACKAGE)
        check(path, SHA256)
        from safetensors.numpy import load_file  # only when it is asked for
        from tokenizers import Tokenizer

        self._table = load_file(path / WEIGHTS)["embedding.weight"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(path / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, zeros for one without words."""
        cut = [both_ends(text) for text in texts]
        encodings = self._tokenizer.encode_batch(cut, add_special_tokens=False)
        rows = np.zeros((len(cut), self._table.shape[1]), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                mean = self._table[encoding.ids].mean(axis=0)
                row[:] = mean / (np.linalg.norm(mean) or 1)
        return rows
