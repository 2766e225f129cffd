"""Counting at the server: asked once a text, bounded in time, and replaced by our own counting wherever it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dialogs.context.estimate import Sizing, estimate, estimate_of, present_context
from dialogs.context.writes import learn_from_usage
from dialogs.llms import counter as server_counter
from dialogs.llms.counter import calibration_of, counter_of
from dialogs.models import LLM, Dialog
from dialogs.models.provider import ProviderKind
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.terms.ports import Counter, Grade
from health.models import CountedText, LlmCalibration
from health.models import calibration as counted_texts
from health.tokens.calibration import Calibration, Uncalibrated
from health.tokens.counters import counter_for
from tests.dialogs.compacting_builders import a_history, long_text
from tests.standins.real import real_llm
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Listening:
    """A llama.cpp to which every character is a token. `delay` in seconds; `status` of all answers."""

    delay: float = 0.0
    status: int = 200
    asked: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/tokenize", self.tokenize, methods=["POST"])])

    async def tokenize(self, request: Request) -> Response:
        self.asked.append((await request.json())["content"])
        await asyncio.sleep(self.delay)
        return JSONResponse({"tokens": [1] * len(self.asked[-1])}, status_code=self.status)

    @property
    def texts(self) -> list[str]:
        return [text for text in self.asked if text != server_counter.TRIAL]


def served(llm: LLM, url: str, kind: str = ProviderKind.LLAMACPP) -> LLM:
    llm.provider.kind, llm.provider.base_url = kind, url
    llm.provider.save()
    return llm


@pytest.fixture(autouse=True)
def nothing_asked_yet() -> Iterator[None]:
    server_counter.known_server.cache_clear()
    yield
    server_counter.known_server.cache_clear()


def forget() -> None:
    """As another process, or this one after a restart."""
    server_counter.known_server.cache_clear()


def test_the_server_counts_each_text_once(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter = counter_of(served(llm, url))

        assert counter.count(["pump", "valve!", "pump", ""]) == [4, 6, 4, 0]
        assert counter_of(llm).count(["valve!", "pump"]) == [6, 4]
        assert sorted(told.texts) == ["pump", "valve!"]
    assert (counter.name, counter.grade) == ("server", Grade.EXACT)


def test_what_it_said_is_kept_for_other_processes_and_its_text_is_not(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter_of(served(llm, url)).count(["pump", "valve!"])
        forget()

        assert counter_of(llm).count(["valve!", "pump"]) == [6, 4]
        assert len(told.texts) == 2
    assert sorted(CountedText.objects.values_list("tokens", flat=True)) == [4, 6]


def test_another_model_at_the_same_address_is_asked_anew(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter_of(served(llm, url)).count(["pump"])
        llm.model_id = "another"
        counter_of(llm).count(["pump"])

    assert told.texts == ["pump", "pump"]


def test_the_oldest_kept_sizes_go(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_texts, "MOST_ROWS", 10)
    with serving(Listening().app()) as url:
        counter = counter_of(served(llm, url))
        for number in range(30):
            counter.count([f"pump {number}"])

    assert CountedText.objects.count() == 10


def test_a_slow_server_is_waited_for_once_and_the_rest_is_counted_here(llm: LLM) -> None:
    texts = [f"{number} {long_text(number)}" for number in range(40)]
    with serving((told := Listening()).app()) as url:
        counter = counter_of(served(llm, url))
        told.delay = 0.1
        begun = time.monotonic()
        sizes = counter.count(texts)
        counter.count([*texts, "one more"])
        spent = time.monotonic() - begun

    assert spent < 2
    assert 1 <= len(told.texts) <= 6
    # As the server counts characters, ours are as many times more as those that it had time for.
    # It may have had time for one alone, and no two texts are alike.
    assert all(size == pytest.approx(len(text), rel=0.5) for size, text in zip(sizes, texts, strict=True))


def test_a_server_that_fails_costs_exactness_only(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter_of(served(llm, url)).count(["pump"])
        told.status = 500
        counter = counter_of(llm)

        assert counter.count(["pump", long_text(1)])[1] > counter_for(llm.model_id).count([long_text(1)])[0]
        asked = len(told.asked)
        counter_of(llm).count([long_text(2)])
        assert len(told.asked) == asked


def test_a_server_without_the_path_is_asked_once_and_counted_for_as_before_as_is_nobody(llm: LLM) -> None:
    with serving((told := Listening(status=404)).app()) as url:
        before = counter_of(llm)
        counter = counter_of(served(llm, url))
        counter_of(llm).count(["pump"])

    assert (counter, counter.name) == (before, "cl100k_base")
    assert told.asked == [server_counter.TRIAL]
    assert counter_of(served(llm, "http://127.0.0.1:9")).name == "cl100k_base"


@pytest.mark.parametrize(
    ("model", "kind", "name"),
    [("llama-3.1-8b", ProviderKind.LLAMACPP, "llama-3"), ("tiny", ProviderKind.LMSTUDIO, "cl100k_base")],
    ids=["our-own-vocabulary-is-the-models", "lm-studio"],
)
def test_who_need_not_or_cannot_count_is_not_asked(llm: LLM, model: str, kind: str, name: str) -> None:
    with serving((told := Listening()).app()) as url:
        llm.model_id = model
        counter = counter_of(served(llm, url, kind))
        counter.count(["pump"])

    assert counter.name.startswith(name)
    assert told.asked == []


def test_inside_a_transaction_nobody_is_asked(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter = counter_of(served(llm, url))
        with transaction.atomic():
            counter.count(["pump"])
    assert told.texts == []


async def test_inside_an_event_loop_nobody_is_asked_and_the_database_is_left_alone(llm: LLM) -> None:
    with serving((told := Listening()).app()) as url:
        counter = await sync_to_async(counter_of)(await sync_to_async(served)(llm, url))
        await sync_to_async(counter.count)([text := long_text(1, 30)])

        (size,) = counter.count([other := long_text(9, 30)])

    assert told.texts == [text]
    assert size == pytest.approx(len(other), rel=0.2)


def test_an_estimate_of_a_server_that_counts_has_no_margin(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=3)
    with serving(Listening().app()) as url:
        served(llm, url)
        context = present_context(dialog_to_drive(dialog.pk))

        found = estimate(context, [], counter_of(context.dialog.llm))

    assert (found.margin, found.counter, found.grade) == (0, "server", Grade.EXACT)
    said = sum(len(piece.content) for piece in context.pieces)
    assert found.messages == said + 4 * len(context.pieces)


def test_what_was_learned_of_another_counter_is_not_used(dialog: Dialog, llm: LLM) -> None:
    LlmCalibration.objects.create(llm=llm, samples=[[1000, 1000, 2000]] * 5)
    a_history(dialog, pairs=3)
    with serving(Listening().app()) as url:
        served(llm, url)
        assert calibration_of(llm) == Uncalibrated()
        context = present_context(dialog_to_drive(dialog.pk))
        counter = counter_of(context.dialog.llm)
        told = estimate_of(estimate(context, [], counter), llm, [], counter)

        learn_from_usage(llm=llm, estimate=told, reported=told.tokens + 50)

        known = calibration_of(llm)
    assert isinstance(known, Calibration)
    assert len(known.samples) == 1
    assert known.ratio == pytest.approx(1, rel=0.1)


@pytest.mark.stack
def test_the_real_llama_cpp_counts_as_its_own_vocabulary_does(llm: LLM) -> None:
    texts = [long_text(3), "你好，世界", "2031-04-07T12:33:01Z 0x7ffe3a2b1c40 timeout after 30000ms", "a"]
    with real_llm() as url:
        counter = counter_of(served(llm, url))

        assert counter.name == "server"
        assert counter.count(texts) == counter_for("smollm2").count(texts)


def test_while_one_request_waits_for_its_server_no_other_does(dialog: Dialog, llm: LLM) -> None:
    def sizing() -> Sizing:
        return Sizing(present_context(dialog_to_drive(dialog.pk)), [])

    other = sizing()
    with serving((told := Listening(delay=0.4)).app()) as url, ThreadPoolExecutor(1) as beside:
        served(llm, url)
        waiting = beside.submit(in_own_connection, lambda: sizing().counter)
        while not told.asked:
            time.sleep(0.01)

        assert other.counter.name != server_counter.SERVER
        assert not waiting.done()


def in_own_connection(work: Callable[[], Counter]) -> Counter:
    try:
        return work()
    finally:
        connection.close()
