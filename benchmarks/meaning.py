"""Measure embedding and summaries: `python -m benchmarks.meaning`. The plan's bounds stand beside what was measured.

Ways that are compared take turns, and the best of their rounds counts, so a busy machine hits all of them alike.
Embedding is cold, every text new, unless it says warm.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.devset import KINDS, cases
from benchmarks.devsets.case import text_of
from benchmarks.prose import ENGLISH, conversation
from health.adapters.embeddings import Embeddings, StaticVectors
from health.adapters.minilm import PACKAGE, MiniLM, folder
from health.compaction.choosing.summaries import extractive
from health.compaction.reading import lexical
from health.compaction.reading.sentences import chunks
from health.compaction.terms.ports import Embed, Embedded, Kit
from health.compaction.terms.units import Role, Unit
from health.services import compact_messages
from health.tokens.counters import counter_for

UNITS, UNIT_TOKENS, ROUNDS, SEED = 50, 200, 3, 4
SOURCE_TOKENS, SUMMARY_TOKENS = 2_000, 300
CASE_CHARS, COLD_MS, WARM_MS = 30_000, 110, 10
KIT = Kit(counter=counter_for("gpt-4o"))

Texts = Sequence[str]


def main() -> None:
    minilm, static = MiniLM(), StaticVectors()
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(folder(PACKAGE) / "model"), device="cpu")
    ways: dict[str, Callable[[Texts], Any]] = {
        "sentence-transformers, default encode": lambda texts: library.encode(texts, show_progress_bar=False),
        "MiniLM": minilm.encode,
        "static vectors": static.encode,
        "lexical vectors": lexical.vectors,
    }
    cold = best(ways, texts(UNITS, UNIT_TOKENS))
    table(f"{UNITS} units of {UNIT_TOKENS} tokens, ms a unit", {way: ms / UNITS for way, ms in cold.items()}, bound=100)
    print(f"\nMiniLM warm, from the cache: {warm(minilm) / UNITS:.2f} ms a unit")
    source = [*units(texts(SOURCE_TOKENS // UNIT_TOKENS, UNIT_TOKENS))]
    embedders = {"MiniLM": minilm.encode, "static vectors": static.encode, "lexical vectors": None}
    summaries = {way: summarising(source, encode) for way, encode in embedders.items()}
    print(f"\nCompaction with its task and MiniLM, ms for 1,000 tokens (bounds: {COLD_MS} cold, {WARM_MS} warm)\n")
    for kind in KINDS:
        print("  {:10} {:7.1f} cold {:7.1f} warm".format(kind, *compaction(minilm, kind)))
    table(f"Extractive summary of {SOURCE_TOKENS:,} tokens in {SUMMARY_TOKENS}, ms", best(summaries, ()), bound=500)


def texts(count: int, tokens: int) -> list[str]:
    """Texts of about so many tokens, of shuffled sentences from this project's docs; the same ones each time."""
    rng = random.Random(SEED)
    said = [chunk.text for message in conversation(ENGLISH) for chunk in chunks(message["content"])]
    found: list[str] = []
    for _ in range(count):
        text, size = "", 0
        while size < tokens:
            text = f"{text} {rng.choice(said)}".strip()
            size = KIT.tokens(text)
        found.append(text)
    return found


def units(contents: Texts) -> tuple[Unit, ...]:
    roles = (Role.USER, Role.ASSISTANT)
    return KIT.counted(Unit(id=f"m{at}", role=roles[at % 2], content=text) for at, text in enumerate(contents))


def summarising(source: Sequence[Unit], encode: Callable[[Texts], Any] | None) -> Callable[[Texts], object]:
    """One summary, every sentence embedded anew."""

    def work(_: Texts) -> object:
        asking, answer = extractive(source, max_tokens=SUMMARY_TOKENS, kit=KIT), None
        try:
            while True:
                need = asking.send(answer)
                answer = Embedded(vectors=encode(need.texts), name="measured") if encode else None
        except StopIteration as end:
            return end.value

    return work


def warm(model: MiniLM) -> float:
    """Milliseconds for all units when their vectors are known."""
    embed = Embeddings({"minilm": lambda: model, "static": lambda: model}).run()
    need = Embed(texts=tuple(texts(UNITS, UNIT_TOKENS)))
    embed(need)
    return best({"warm": lambda _: embed(need)}, ())["warm"]


def compaction(model: MiniLM, kind: str) -> tuple[float, float]:
    """One conversation to a quarter, twice: with no sentence known, and with all of them."""
    (case,) = cases(kind, SEED, 1, chars=CASE_CHARS)
    size = sum(KIT.counter.count([text_of(message) for message in case.messages]))
    # The clock stands still, so that MiniLM is not given up for static vectors when the machine is busy.
    embedder = Embeddings({"minilm": lambda: model}, clock=lambda: 0.0).run("minilm")
    found = []
    for _ in range(2):
        begin = time.perf_counter()
        compact_messages(case.messages, limit_tokens=size // 4, task=case.task, model="gpt-4o", embedder=embedder)
        found.append(1e6 * (time.perf_counter() - begin) / size)
    return found[0], found[1]


def best(ways: dict[str, Callable[[Texts], Any]], given: Texts) -> dict[str, float]:
    """The milliseconds of each way's best round, after one to warm up."""
    found = dict.fromkeys(ways, float("inf"))
    for number in range(ROUNDS + 1):
        for way, work in ways.items():
            begin = time.perf_counter()
            work(given)
            if number:
                found[way] = min(found[way], 1000 * (time.perf_counter() - begin))
    return found


def table(title: str, measured: dict[str, float], *, bound: float) -> None:
    """Each way, its figure, and its ratio to the first one's."""
    first = next(iter(measured.values()))
    print(f"\n{title} (bound: {bound:g})\n")
    for way, ms in measured.items():
        print(f"  {way:40} {ms:9.2f}   x {ms / first:.3f}   {'ok' if ms < bound else 'OVER'}")


if __name__ == "__main__":
    main()
