"""Windows that are asked for before anything is sent, against stand-in servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from dialogs.common.errors import headline
from dialogs.llms.windows import fresh_window
from dialogs.models import LLM, Dialog, Generation
from dialogs.providers.base import ProviderUnreachable
from dialogs.turns.writes.messages import retry
from tests.dialogs.driver.conftest import ask_and_drive, drive_until_idle
from tests.dialogs.providers.worlds import error_of
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.ollama import OllamaStandin
from tests.standins.serving import serving

# Real transactions: the driver's thread opens and closes connections as it does in a worker.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def studio() -> Iterator[tuple[LMStudioStandin, str]]:
    standin = LMStudioStandin(answer="Hello there.")
    with serving(standin.app()) as url:
        yield standin, url


@pytest.fixture
def llm(studio: tuple[LMStudioStandin, str], llm: LLM) -> LLM:
    """The dialog's LLM, served by LM Studio; nobody has written a window down."""
    _serve(llm, kind="lmstudio", url=studio[1])
    return llm


def _serve(llm: LLM, *, kind: str, url: str) -> None:
    llm.provider.kind, llm.provider.base_url = kind, url
    llm.provider.save()
    llm.context_length, llm.context_length_source, llm.optimal_max_tokens = None, "", None
    llm.save()


def window_of(llm: LLM) -> int | None:
    found = LLM.objects.select_related("provider").get(pk=llm.pk)
    return async_to_sync(fresh_window)(found)


def aged(llm: LLM, *, seconds: int) -> None:
    LLM.objects.filter(pk=llm.pk).update(limits_read_at=timezone.now() - timedelta(seconds=seconds))


def test_without_a_loaded_window_nothing_is_sent_and_the_reader_is_told(
    dialog: Dialog, studio: tuple[LMStudioStandin, str], caplog: pytest.LogCaptureFixture
) -> None:
    studio[0].loaded = False
    ask_and_drive(dialog)

    generation = Generation.objects.get()
    assert (generation.status, generation.error_code) == ("failed", "limit_unavailable")
    assert "“tiny”" in generation.error_message
    assert "Load it in LM Studio" in generation.error_message
    assert "Nothing was sent" in str(headline(generation.error_code))
    assert generation.error_message in caplog.text
    assert studio[0].asked == []


def test_once_it_is_loaded_the_same_question_is_answered(dialog: Dialog, studio: tuple[LMStudioStandin, str]) -> None:
    studio[0].loaded = False
    ask_and_drive(dialog)
    studio[0].loaded = True

    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Hello there."
    dialog.llm.refresh_from_db()
    assert (dialog.llm.context_length, dialog.llm.context_length_source) == (4096, "server")


def test_a_well_known_name_does_not_stand_in_for_a_window(llm: LLM, studio: tuple[LMStudioStandin, str]) -> None:
    studio[0].loaded, studio[0].model = False, "gpt-oss-120b"
    LLM.objects.filter(pk=llm.pk).update(model_id="gpt-oss-120b", context_length=131_072, context_length_source="file")
    found = LLM.objects.select_related("provider").get(pk=llm.pk)

    error = async_to_sync(error_of)(fresh_window(found))

    assert error.code == "limit_unavailable"
    assert not error.retryable


def test_a_window_is_read_again_after_five_seconds_and_not_before(
    llm: LLM, studio: tuple[LMStudioStandin, str]
) -> None:
    first = window_of(llm)
    studio[0].context = 8192

    at_once = window_of(llm)
    aged(llm, seconds=6)
    after = window_of(llm)

    assert (first, at_once, after) == (4096, 4096, 8192)


@pytest.mark.parametrize(("typed", "window"), [(2000, 2000), (100_000, 4096)])
def test_an_admins_number_lowers_what_is_loaded_and_never_raises_it(llm: LLM, typed: int, window: int) -> None:
    LLM.objects.filter(pk=llm.pk).update(context_length=typed, context_length_source="admin")

    assert window_of(llm) == window


def test_an_admins_number_stands_in_for_one_that_the_server_does_not_tell(
    llm: LLM, studio: tuple[LMStudioStandin, str]
) -> None:
    studio[0].loaded = False
    LLM.objects.filter(pk=llm.pk).update(context_length=2000, context_length_source="admin")

    assert window_of(llm) == 2000


def test_a_server_that_is_down_is_not_taken_for_one_that_does_not_say(llm: LLM) -> None:
    llm.provider.base_url = "http://127.0.0.1:9"
    llm.provider.save()
    found = LLM.objects.select_related("provider").get(pk=llm.pk)

    assert isinstance(async_to_sync(error_of)(fresh_window(found)), ProviderUnreachable)


def test_ollama_is_asked_while_the_window_is_unknown_and_may_stay_unknown(llm: LLM) -> None:
    standin = OllamaStandin()
    with serving(standin.app()) as url:
        _serve(llm, kind="ollama", url=url)
        unloaded = window_of(llm)
        standin.allocated = 4096
        within_the_minute = window_of(llm)
        aged(llm, seconds=61)
        after = window_of(llm)

    assert (unloaded, within_the_minute, after) == (None, None, 4096)


def test_other_kinds_are_never_asked(llm: LLM, studio: tuple[LMStudioStandin, str]) -> None:
    llm.provider.kind = "openai"
    llm.provider.save()

    assert window_of(llm) is None
    llm.refresh_from_db()
    assert llm.limits_read_at is None


# --- Loading a model that is not loaded ------------------------------------------------------------------------------


def test_a_model_is_loaded_with_the_window_that_staff_want(
    dialog: Dialog, llm: LLM, studio: tuple[LMStudioStandin, str]
) -> None:
    studio[0].loaded = False
    LLM.objects.filter(pk=llm.pk).update(load_with=16_384)
    ask_and_drive(dialog)

    assert Generation.objects.get().status == "finished"
    assert (studio[0].loads, studio[0].context) == (1, 16_384)
    llm.refresh_from_db()
    assert (llm.detected_context_length, llm.loading_until) == (16_384, None)


def test_what_is_loaded_stays_as_it_is(llm: LLM, studio: tuple[LMStudioStandin, str]) -> None:
    LLM.objects.filter(pk=llm.pk).update(load_with=16_384)

    assert window_of(llm) == 4096
    assert studio[0].loads == 0


def test_two_that_come_at_once_load_it_once(llm: LLM, studio: tuple[LMStudioStandin, str]) -> None:
    studio[0].loaded, studio[0].delay = False, 0.5
    LLM.objects.filter(pk=llm.pk).update(load_with=16_384)

    async def both() -> list[int | None]:
        rows = [row async for row in LLM.objects.select_related("provider").filter(pk=llm.pk)]
        rows.append(await LLM.objects.select_related("provider").aget(pk=llm.pk))
        return list(await asyncio.gather(*(fresh_window(row) for row in rows)))

    assert async_to_sync(both)() == [16_384, 16_384]
    assert studio[0].loads == 1
