"""One embedder for a run, static vectors where MiniLM is absent or slow, caches, and a clock that is handed in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from health.adapters import embeddings, minilm
from health.adapters.embeddings import (
    RETRY_SECONDS,
    Cache,
    Embeddings,
    Pace,
    Row,
    UnsupportedEmbedder,
    canonical,
    embedder,
)
from health.adapters.minilm import Unavailable
from health.compaction.choosing.scoring import coherence
from health.compaction.terms.ports import Embed
from health.compaction.terms.units import Kind
from tests.health.compaction.builders import a_unit, finish


@dataclass
class World:
    """A clock, and models that take their time on it."""

    now: float = 0.0
    milliseconds: float = 1.0
    broken: bool = False
    encoded: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    begun: threading.Event | None = None
    goes_on: threading.Event | None = None

    def clock(self) -> float:
        return self.now

    def embeddings(self, **load: Callable[[], embeddings.Model]) -> Embeddings:
        return Embeddings({"minilm": self.minilm, "static": self.static} | load, clock=self.clock)

    def minilm(self) -> embeddings.Model:
        self.loads.append("minilm")
        return Slow(self)

    def static(self) -> embeddings.Model:
        self.loads.append("static")
        return Swift()


@dataclass
class Slow:
    world: World
    name: str = "slow"

    def encode(self, texts: Sequence[str]) -> Row:
        if self.world.broken:
            raise RuntimeError("out of memory")
        if self.world.begun and self.world.goes_on:
            self.world.begun.set()
            self.world.goes_on.wait(10)
        self.world.now += len(texts) * self.world.milliseconds / 1000
        self.world.encoded.extend(texts)
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))


class Swift:
    name = "swift"

    def encode(self, texts: Sequence[str]) -> Row:
        return np.tile(np.array([0, 1], dtype=np.float32), (len(texts), 1))


def missing() -> embeddings.Model:
    raise Unavailable("not installed")


def hanging() -> embeddings.Model:
    threading.Event().wait()
    raise AssertionError


def crashing() -> embeddings.Model:
    class Panic(BaseException):
        """What libraries written in Rust raise; `except Exception` does not catch it."""

    raise Panic("index out of bounds")


def some(number: int, *, start: int = 0) -> Embed:
    return Embed(texts=tuple(f"text {at}" for at in range(start, start + number)))


def used(run: embeddings.Embedder, need: Embed) -> str:
    answer = run(need)
    return answer.name if answer else "none"


class TestTheChoice:
    def test_is_minilm_where_it_is_there_and_fast_and_loads_it_once(self) -> None:
        world = World()
        process = world.embeddings()
        process.run()
        assert world.loads == []

        assert [used(process.run(), some(2)) for _ in range(3)] == ["slow"] * 3
        assert world.loads == ["minilm"]

    def test_is_static_when_asked_for_and_nothing_else_is_loaded_nor_before_the_first_text(self) -> None:
        world = World()

        run = world.embeddings().run("static")
        assert world.loads == []

        assert used(run, some(3)) == "swift"
        assert world.loads == ["static"]

    @pytest.mark.parametrize("load", [missing, crashing])
    def test_is_static_where_minilm_is_absent_or_loading_it_crashes(self, load: Callable[[], embeddings.Model]) -> None:
        assert used(World().embeddings(minilm=load).run(), some(3)) == "swift"

    def test_is_nobody_where_both_are_absent(self) -> None:
        assert World().embeddings(minilm=missing, static=missing).run()(some(3)) is None

    @pytest.mark.parametrize(("kind", "means"), [("minilm", "minilm"), ("static", "static"), ("glove", "static")])
    def test_is_named_as_in_the_configuration(self, kind: str, means: str) -> None:
        assert canonical(kind) == means

    @pytest.mark.parametrize("kind", ["", "word2vec", "MiniLM"])
    def test_of_another_name_is_refused(self, kind: str) -> None:
        with pytest.raises(UnsupportedEmbedder, match=f"^Unsupported embedder: {kind}$"):
            embedder(kind)


class TestSlowness:
    def test_found_at_the_first_need_makes_the_whole_run_static(self) -> None:
        world = World(milliseconds=150)
        run = world.embeddings().run()

        assert [used(run, some(100)), used(run, some(100, start=100))] == ["swift", "swift"]
        assert len(world.encoded) == embeddings.FEWEST_MEASURED

    def test_found_later_does_not_change_a_run_that_has_begun(self) -> None:
        world = World()
        run = world.embeddings().run()
        used(run, some(20))

        world.milliseconds = 150

        assert used(run, some(50, start=20)) == "slow"

    def test_on_a_machine_that_stands_still_is_found_within_the_first_texts(self) -> None:
        world = World(milliseconds=60_000)

        assert used(world.embeddings().run(), some(100)) == "swift"
        assert len(world.encoded) == 8

    def test_found_later_keeps_nobody_waiting_who_has_waited_long(self) -> None:
        world = World()
        run = world.embeddings().run()
        used(run, some(20))
        world.milliseconds = 60_000

        assert [used(run, some(100, start=20)), used(run, some(1))] == ["none", "none"]
        assert len(world.encoded) == 20 + embeddings.SLICE

    def test_makes_the_next_runs_static_and_is_tried_again_after_a_while(self) -> None:
        world = World(milliseconds=150)
        process = world.embeddings()
        used(process.run(), some(20))
        assert used(process.run(), some(1)) == "swift"

        world.now += RETRY_SECONDS - 1
        assert used(process.run(), some(1)) == "swift"

        world.now += 1
        assert used(process.run(), some(1, start=50)) == "slow"

    def test_of_a_single_text_is_no_verdict(self) -> None:
        world = World(milliseconds=5000)
        process = world.embeddings()
        used(process.run(), some(1))

        assert used(process.run(), some(1)) == "slow"

    @pytest.mark.parametrize(("milliseconds", "then"), [(90, "swift"), (70, "slow")])  # 100 is the bound, 80 to return
    def test_must_be_clearly_over_to_be_forgiven(self, milliseconds: float, then: str) -> None:
        world = World(milliseconds=150)
        process = world.embeddings()
        used(process.run(), some(20))
        world.now += RETRY_SECONDS
        world.milliseconds = milliseconds
        used(process.run(), some(20, start=20))

        assert used(process.run(), some(1)) == then

    def test_of_loading_does_not_count(self) -> None:
        world = World()

        def load() -> embeddings.Model:
            world.now += 5
            return Slow(world)

        process = world.embeddings(minilm=load)

        assert [used(process.run(), some(20)), used(process.run(), some(20))] == ["slow", "slow"]

    def test_of_loading_keeps_nobody_waiting_and_is_used_once_it_has_ended(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 0.5)
        loaded, world = threading.Event(), World()
        process = world.embeddings(minilm=lambda: world.minilm() if loaded.wait(60) else missing())

        assert [used(process.run(), some(1)) for _ in range(2)] == ["swift", "swift"]

        loaded.set()
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 10)
        assert used(process.run(), some(1)) == "slow"

    def test_of_loading_that_hangs_is_waited_for_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 0.5)
        world = World()
        process = world.embeddings(minilm=hanging)
        used(process.run(), some(1))

        monkeypatch.setattr(embeddings, "MOST_SECONDS", 60)
        world.now += 60

        assert used(process.run(), some(1)) == "swift"

    def test_of_loading_whatever_there_is_keeps_nobody_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 0.5)

        assert used(World().embeddings(minilm=hanging, static=hanging).run(), some(1)) == "none"

    def test_of_another_threads_texts_keeps_nobody_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 0.5)
        world = World()
        process = world.embeddings()
        first, second = process.run(), process.run()
        used(second, some(1))
        world.begun, world.goes_on = threading.Event(), threading.Event()
        embedding = threading.Thread(target=first, args=[some(1, start=1)])
        embedding.start()
        world.begun.wait(10)

        assert used(second, some(1)) == "none"

        world.goes_on.set()
        embedding.join()

    @pytest.mark.parametrize(("before", "then"), [(0, "swift"), (20, "none")])  # texts embedded by then
    def test_of_one_text_keeps_nobody_waiting(self, before: int, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 1)
        world = World()
        run = world.embeddings().run()
        if before:
            used(run, some(before))
        world.begun, world.goes_on = threading.Event(), threading.Event()

        assert used(run, some(1, start=20)) == then

        world.goes_on.set()

    def test_of_many_texts_is_waited_for_no_longer_than_that_in_sum(self) -> None:
        world = World(milliseconds=90)
        run = world.embeddings().run()
        for start in range(0, 400, 40):
            used(run, some(40, start=start))

        assert used(run, some(1, start=400)) == "none"
        assert world.now <= embeddings.MOST_SECONDS

    def test_of_one_text_serves_the_next_run_when_it_is_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 1)
        world = World()
        process = world.embeddings()
        world.begun, world.goes_on = threading.Event(), threading.Event()
        others = set(threading.enumerate())
        used(process.run(), some(1))

        world.goes_on.set()
        for thread in set(threading.enumerate()) - others:
            thread.join(10)

        assert used(process.run(), some(1)) == "slow"
        assert len(world.encoded) == 1
        assert not set(threading.enumerate()) - others

    def test_that_does_not_end_is_waited_for_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 1)
        world = World()
        process = world.embeddings()
        world.begun, world.goes_on = threading.Event(), threading.Event()
        used(process.run(), some(1))
        world.now += 2
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 60)
        world.now += 60

        assert used(process.run(), some(1)) == "swift"

        world.goes_on.set()

    def test_of_long_ago_is_forgotten(self) -> None:
        pace = Pace()
        pace.note(20, 1.0, now=1)
        for _ in range(20):
            pace.note(20, 0.1, now=2)

        assert pace.milliseconds == pytest.approx(5.0)


class TestFailure:
    def test_half_way_leaves_the_rest_of_the_run_without_and_does_not_touch_the_next(self) -> None:
        world = World()
        process = world.embeddings()
        run = process.run()
        used(run, some(2))
        world.broken = True

        assert used(run, some(2, start=2)) == "none"

        world.broken = False
        assert used(run, some(2)) == "none"
        assert used(process.run(), some(2)) == "slow"


class TestCaches:
    def test_a_text_is_embedded_once(self) -> None:
        world = World()
        process = world.embeddings()

        for _ in range(2):
            process.run()(Embed(texts=("a", "b", "a")))

        assert sorted(world.encoded) == ["a", "b"]

    @pytest.mark.parametrize(("after", "embedded"), [(299, 1), (301, 2)])  # kept for five minutes
    def test_a_query_is_kept_for_five_minutes(self, after: float, embedded: int) -> None:
        world = World(milliseconds=0)
        run = world.embeddings().run()
        run(Embed(texts=("the query",), queries=1))

        world.now = after
        run(Embed(texts=("the query",), queries=1))

        assert len(world.encoded) == embedded

    def test_a_content_is_kept_for_longer(self) -> None:
        world = World()
        run = world.embeddings().run()
        run(Embed(texts=("a message",)))

        world.now = 100_000
        run(Embed(texts=("a message",)))

        assert world.encoded == ["a message"]

    def test_vectors_of_two_embedders_are_not_confused(self) -> None:
        process = World().embeddings()

        one, other = process.run("minilm")(some(1)), process.run("static")(some(1))

        assert one is not None
        assert other is not None
        assert (one.vectors != other.vectors).any()

    def test_a_vector_holds_no_others_that_were_made_with_it(self) -> None:
        found = World().embeddings()
        found.run("minilm")(some(40))

        assert [row.base for _made, row in found._kept._rows.values()] == [None] * 40

    def test_the_least_used_leave_first(self) -> None:
        cache, row = Cache(2), np.zeros(1, np.float32)
        cache.put(b"a", row, 0)
        cache.put(b"b", row, 0)
        cache.get(b"a", 0)

        cache.put(b"c", row, 0)

        assert [cache.get(key, 0) is not None for key in (b"a", b"b", b"c")] == [True, False, True]

    @pytest.mark.parametrize("texts", [(), ("\ud800",)])
    def test_each_text_has_its_row_be_there_none_or_half_a_character(self, texts: tuple[str, ...]) -> None:
        answer = World().embeddings().run()(Embed(texts=texts))

        assert answer is not None
        assert len(answer.vectors) == len(texts)

    def test_threads_wait_for_each_other(self) -> None:
        world = World()
        process = world.embeddings()
        threads = [threading.Thread(target=process.run(), args=(some(50),)) for _ in range(8)]

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(world.encoded) == 50


class TestTheFiles:
    def test_a_package_that_is_not_there_says_what_to_do(self) -> None:
        with pytest.raises(Unavailable, match="make install"):
            minilm.folder("no_such_package_of_ours")

    def test_another_file_than_the_one_we_know_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"other weights")

        with pytest.raises(Unavailable, match="is not the file we know"):
            minilm.check(tmp_path, minilm.SHA256)

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(Unavailable, match=r"model\.safetensors cannot be read"):
            minilm.check(tmp_path, minilm.SHA256)


@cache
def real_models() -> Embeddings:
    """On a clock that stands still, so that a busy machine is not taken for a slow model."""
    load = {"minilm": minilm.MiniLM, "static": embeddings.StaticVectors}
    return Embeddings(load, clock=lambda: 0.0)


@pytest.mark.parametrize("kind", ["minilm", "static"])
class TestTheRealModels:
    @pytest.fixture(autouse=True)
    def installed(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embeddings, "MOST_SECONDS", 300)  # nor is one that waits for its turn
        if kind == "minilm":
            pytest.importorskip("sentence_transformers")

    def embed(self, kind: str, *texts: str) -> Row:
        answer = real_models().run(kind)(Embed(texts=texts))
        assert answer is not None
        assert answer.name == {"minilm": minilm.NAME, "static": embeddings.NAME}[kind]
        return answer.vectors

    def test_know_what_is_close(self, kind: str) -> None:
        rows = self.embed(kind, "The cat sleeps.", "A kitten is sleeping.", "Interest rates rose again.")

        assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2

    def test_give_rows_of_length_one_in_the_order_given(self, kind: str) -> None:
        texts = ("short", "a much longer text " * 100, "中文", "short")

        rows = self.embed(kind, *texts)

        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
        assert (rows[0] == rows[3]).all()

    def test_read_the_end_of_a_long_text_too(self, kind: str) -> None:
        filler = "The weather was pleasant and nothing else happened on that day. " * 60
        rows = self.embed(
            kind, "the kitten is asleep", filler, f"{filler}The cat sleeps. {'The kitten is asleep. ' * 40}"
        )

        assert rows[0] @ rows[2] > rows[0] @ rows[1] + 0.1

    def test_tell_a_true_summary_from_anothers(self, kind: str) -> None:
        talk = [
            "The signing key of the payment server leaked in March.",
            "We rotated the key on Monday and told the bank.",
            "Who had access to the payment server in March?",
        ]
        units = tuple(a_unit(text) for text in talk)
        true, other = (
            a_unit(text, kind=Kind.SUMMARY, source_ids=tuple(unit.id for unit in units))
            for text in (
                "user: The signing key of the payment server leaked in March.\nuser: We rotated the key on Monday.",
                "user: The soup needs salt.\nuser: Dinner is at eight on the terrace.",
            )
        )

        assert finish(coherence(units, (true,)), real_models().run(kind)) >= 0.7
        assert finish(coherence(units, (other,)), real_models().run(kind)) < 0.6

    def test_survive_an_empty_text_half_a_character_and_ten_megabytes(self, kind: str) -> None:
        rows = self.embed(kind, "", "half \ud800", "word " * 2_000_000)

        assert np.isfinite(rows).all()


def test_minilm_agrees_with_sentence_transformers_own_way() -> None:
    library = pytest.importorskip("sentence_transformers")
    texts = ["hello there", "The signing key leaked in March. " * 20, "naïve café 你好"]
    reference = library.SentenceTransformer(str(minilm.folder(minilm.PACKAGE) / "model"), device="cpu")

    ours = minilm.MiniLM().encode(texts)

    assert ours == pytest.approx(reference.encode(texts, normalize_embeddings=True), abs=1e-4)
