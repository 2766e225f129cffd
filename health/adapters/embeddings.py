"""Answers `Embed` needs: with MiniLM, or for a whole run with static vectors if MiniLM is absent or slow. One run never
gets both. The speed of MiniLM is measured here, and vectors are cached; clocks are passed as `now`, in seconds.

A run gets one answerer from `embedder()`. A model is loaded once per process, at the first text and in a thread of its
own, and used by one thread at a time; a run waits for neither for long. Vectors are cached by embedder and text.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
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
# number. No run waits longer than the seconds for vectors.
FEWEST_MEASURED, MOST_MEASURED, MOST_SECONDS = 16, 256, 10.0
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
        self._lock = Lock()
        self._used_at = clock()

    @property
    def unused_seconds(self) -> float:
        return self._clock() - self._used_at

    def run(self, kind: str = DEFAULT) -> Embedder:
        """An embedder for one run: the same model for all texts, and None after the first failure."""
        return RunEmbedder(self, canonical(kind))

    def choose(self, kind: str) -> Model | None:
        """The model asked for, else static vectors, else None; also where one takes long to load. Strategies then use
        lexical vectors. Raises TooSlow."""
        self._used_at = self._clock()
        with self._alone():
            may_begin = kind == "minilm" and self._pace.may_begin(self._clock())
        return (self._model(kind) if may_begin else None) or self._model("static")

    def embed(self, model: Model, need: Embed, *, first: bool) -> Embedded:
        """The vectors, if possible from the caches. Raises TooSlow: at a run's first need soon, later only late."""
        with self._alone():
            keys = [_key(model, text) for text in need.texts]
            known = {key: self._known(key) for key in keys}
            missing = {key: text for key, text in zip(keys, need.texts, strict=True) if known[key] is None}
            queries = set(keys[: need.queries])
            for key, row in self._made(model, missing, first=first):
                known[key] = row
                (self._queries if key in queries else self._kept).put(key, row, self._clock())
        rows = [made for key in keys if (made := known[key]) is not None]
        return Embedded(vectors=np.stack(rows) if rows else np.zeros((0, 1), np.float32), name=model.name)

    def _made(self, model: Model, missing: Mapping[bytes, str], *, first: bool) -> Iterator[tuple[bytes, Row]]:
        """Compute the missing vectors, in batches of texts of about equal length."""
        keys = sorted(missing, key=lambda key: len(missing[key]))
        asked = self._clock()
        for start in range(0, len(keys), SLICE):
            part = keys[start : start + SLICE]
            begin = self._clock()
            rows = model.encode([missing[key] for key in part])
            # Copies, as a cached row would keep the whole array in memory.
            yield from zip(part, (row.copy() for row in rows), strict=True)
            if model is self._models.get("minilm"):
                is_slow = self._pace.note(len(part), self._clock() - begin, self._clock())
                is_over = first or self._clock() - asked > MOST_SECONDS
                if is_slow and is_over and start + SLICE < len(keys):
                    raise TooSlow(f"MiniLM takes {self._pace.milliseconds:.0f} ms a text")

    def _known(self, key: bytes) -> Row | None:
        now = self._clock()
        kept = self._kept.get(key, now)
        return kept if kept is not None else self._queries.get(key, now)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time. Raises TooSlow if another has the models for long."""
        if not self._lock.acquire(timeout=MOST_SECONDS):
            raise TooSlow("another run uses the models for long")
        try:
            yield
        finally:
            self._lock.release()

    def _model(self, kind: str) -> Model | None:
        """The model, loaded at its first use in a thread of its own; None if it cannot be loaded, or not soon. A later
        run may then have it."""
        since, is_over = self._loading.setdefault(kind, (self._clock(), begun := Event()))
        if is_over is begun:
            Thread(target=self._load_it, args=[kind, begun], name=f"loads-{kind}", daemon=True).start()
        if not is_over.wait(max(0.0, since + MOST_SECONDS - self._clock())):
            logger.warning("Embedder %s is still being loaded: this run goes without.", kind)
        return self._models.get(kind)

    def _load_it(self, kind: str, is_over: Event) -> None:
        try:
            self._models[kind] = self._load[kind]()
        except BaseException as error:  # a broken torch, or a library written in Rust, may raise anything
            logger.warning("Embedder %s is not used: %s", kind, error)
        finally:
            is_over.set()


class RunEmbedder:
    """Answers all needs of one run with one embedder, as vectors of two cannot be compared."""

    def __init__(self, embeddings: Embeddings, kind: str) -> None:
        self._embeddings, self._kind = embeddings, kind
        self._model: Model | None = None
        self._began = self._failed = False

    def __call__(self, need: Embed) -> Embedded | None:
        if self._failed:
            return None
        try:
            if not self._began:
                self._model = self._embeddings.choose(self._kind)
            answer = self._answer(need)
        except Exception as error:  # the run goes on with lexical vectors
            logger.warning("Embedding failed; the rest of this run goes without: %s", error)
            answer = None
        self._began, self._failed = True, answer is None
        return answer

    def _answer(self, need: Embed) -> Embedded | None:
        if self._model is None:
            return None
        try:
            return self._embeddings.embed(self._model, need, first=not self._began)
        except TooSlow as error:
            if self._began:
                raise
            logger.info("%s: static vectors serve this run.", error)
        self._model = self._embeddings.choose("static")
        return self._embeddings.embed(self._model, need, first=False) if self._model else None


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
