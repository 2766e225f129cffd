"""A change to an LLM with less room: both numbers are said, and what is to be done is asked."""

from __future__ import annotations

import pytest
from django.test import Client

from dialogs.compacting.work import perform
from dialogs.models import LLM, Dialog
from dialogs.services.compaction import cancel_run
from dialogs.services.smaller_llm import misfit_of
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, calibrate, estimated, guard
from tests.dialogs.views.pages import HTMX, Page, page

BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
FIRST = {"how": "compact"}


@pytest.fixture
def long(dialog: Dialog) -> Dialog:
    """A dialog of about five thousand tokens, in a window with room for it."""
    calibrate(dialog.llm)
    a_history(dialog, pairs=24)
    return dialog


def of_window(dialog: Dialog, window: int | None, name: str = "small") -> LLM:
    llm = LLM.objects.create(provider=dialog.llm.provider, model_id=name, context_length=window)
    calibrate(llm)
    return llm


def url(dialog: Dialog) -> str:
    return f"/dialogs/{dialog.pk}/llm/"


def answers(dialog: Dialog) -> LLM:
    return Dialog.objects.select_related("llm").get(pk=dialog.pk).llm


def worked(client: Client, dialog: Dialog, small: LLM) -> CompactionRun:
    """Compact first, then change: the run, when it is over."""
    client.post(url(dialog), {"llm": small.pk, **FIRST})
    run = CompactionRun.objects.get()
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


@BOTH
def test_what_does_not_fit_is_said_with_both_numbers_before_anything_changes(
    as_alice: Client, long: Dialog, headers: dict[str, str]
) -> None:
    small = of_window(long, 4096)

    response = as_alice.post(url(long), {"llm": small.pk}, headers=headers)

    found = Page(response.content.decode())
    assert f"The next request needs ≈{estimated(long):,} tokens, and {small.slug} has room for 3,687." in found.text
    offered = [attrs["value"] for tag, attrs in found.tags if tag == "button" and attrs.get("name") == "how"]
    assert offered == ["anyway", "compact"]
    assert answers(long) == long.llm
    assert not CompactionRun.objects.exists()


def test_changed_anyway_it_is_changed_at_once(as_alice: Client, long: Dialog) -> None:
    small = of_window(long, 4096)

    as_alice.post(url(long), {"llm": small.pk, "how": "anyway"})

    assert answers(long) == small
    assert not CompactionRun.objects.exists()


@pytest.mark.parametrize("window", [100_000, None])
def test_an_llm_with_room_or_of_unknown_window_is_taken_without_a_question(
    as_alice: Client, long: Dialog, window: int | None
) -> None:
    other = of_window(long, window)

    as_alice.post(url(long), {"llm": other.pk})

    assert answers(long) == other


def test_an_agents_own_limit_is_no_less_room_in_another_window(as_alice: Client, long: Dialog) -> None:
    guard(long, limit=3500)
    other = of_window(long, 50_000)

    as_alice.post(url(long), {"llm": other.pk})

    assert answers(long) == other


def test_compacted_first_it_fits_and_then_the_other_answers(as_alice: Client, long: Dialog) -> None:
    small = of_window(long, 4096)

    as_alice.post(url(long), {"llm": small.pk, **FIRST})
    assert answers(long) == long.llm, "until the compaction holds"
    run = CompactionRun.objects.get()
    perform(run.pk, embedder="static")

    assert answers(long) == small
    assert misfit_of(long, small) is None
    assert estimated(Dialog.objects.get(pk=long.pk)) <= 3687


def test_where_compaction_cannot_make_it_fit_the_same_llm_goes_on(as_alice: Client, long: Dialog) -> None:
    tiny = of_window(long, 600)

    run = worked(as_alice, long, tiny)

    assert run.status == "failed"
    assert answers(long) == long.llm
    assert "The same LLM answers as before." in page(as_alice, f"/dialogs/{long.pk}/").text


def test_a_cancelled_compaction_changes_no_llm(as_alice: Client, long: Dialog) -> None:
    as_alice.post(url(long), {"llm": of_window(long, 4096).pk, **FIRST})

    cancel_run(dialog=long, run_id=CompactionRun.objects.get().pk)

    assert answers(long) == long.llm


def test_another_choice_meanwhile_stays(as_alice: Client, long: Dialog) -> None:
    as_alice.post(url(long), {"llm": of_window(long, 4096).pk, **FIRST})
    large = of_window(long, 200_000, "large")

    as_alice.post(url(long), {"llm": large.pk})
    perform(CompactionRun.objects.get().pk, embedder="static")

    assert answers(long) == large


def test_the_dialog_of_another_is_not_there(as_bob: Client, long: Dialog) -> None:
    assert as_bob.post(url(long), {"llm": of_window(long, 4096).pk, **FIRST}).status_code == 404
    assert not CompactionRun.objects.exists()
