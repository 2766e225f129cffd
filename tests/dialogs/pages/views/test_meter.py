"""The meter and its panel: the provider's numbers as they are, a drawing that stays inside, and no guess."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from dialogs.compaction.writes.view_changes import redo, undo
from dialogs.context.chart import chart
from dialogs.driver.writes.courses import start_course
from dialogs.models import LLM, Agent, Dialog, LlmBounds
from dialogs.pages.writes import change_llm
from dialogs.transcript.reads.dialogs import dialog_meter
from dialogs.turns.writes.messages import post_message
from health.selectors import Meter, history
from tests.builders import a_generation, a_reading
from tests.dialogs.compaction_runs import an_applied_run
from tests.dialogs.pages.views.pages import Page, page


@pytest.fixture
def asked(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    return dialog


def meter_page(dialog: Dialog) -> Page:
    return drawn(dialog_meter(dialog))


def drawn(meter: Meter) -> Page:
    return Page(render_to_string("dialogs/_meter.html", {"meter": meter}))


def panel(dialog: Dialog) -> Page:
    return Page(panel_html(dialog))


def panel_html(dialog: Dialog) -> str:
    points = history(dialog.pk)
    context = {"meter": dialog_meter(dialog), "history": points, "chart": chart(points)}
    return render_to_string("dialogs/_health_panel.html", context)


def words(page: Page) -> str:
    return " ".join(page.text.split())


def spoken(page: Page) -> dict[str, Any]:
    """The attributes of what people hear."""
    (attrs,) = [attrs for _tag, attrs in page.tags if attrs.get("role") == "meter"]
    return attrs


def with_class(page: Page, name: str) -> list[dict[str, str | None]]:
    return [attrs for _tag, attrs in page.tags if name in (attrs.get("class") or "").split()]


@pytest.mark.parametrize(
    ("prompt_tokens", "level", "count", "percent", "width"),
    [
        (0, "healthy", "0", "0.0", "0.0"),
        (94, "healthy", "94", "9.4", "9.4"),
        (500, "healthy", "500", "50", "50.0"),
        (501, "caution", "501", "50", "50.1"),
        (901, "critical", "901", "90", "90.1"),
        # More than the window is said in words, and within the meter's range.
        (1070, "critical", "1,070", "107", "100.0"),
    ],
)
def test_each_level_is_a_colour_a_word_and_numbers_heard_too_and_the_drawing_ends_at_its_edge(
    asked: Dialog, prompt_tokens: int, level: str, count: str, percent: str, width: str
) -> None:
    a_reading(asked, prompt_tokens)

    found = meter_page(asked)

    assert words(found).startswith(f"{count} / 1,000 {percent} % {level}")
    assert [attrs["data-level"] for _tag, attrs in found.tags if attrs.get("id") == "meter"] == [level]
    bar, ring = with_class(found, "meter-fill")
    assert (bar["width"], ring["stroke-dasharray"]) == (width, f"{width} 100")
    attrs, now = spoken(found), str(min(prompt_tokens, 1000))
    assert (attrs["aria-valuemin"], attrs["aria-valuenow"], attrs["aria-valuemax"]) == ("0", now, "1000")
    said = f"{count} of 1,000 tokens, {percent} %, {level}"
    assert (attrs["aria-label"], attrs["aria-valuetext"]) == ("Context window", said)
    # No inline style.
    assert found.offences + panel(asked).offences == []


def test_an_unknown_reading_is_called_unknown_and_has_no_fill(asked: Dialog) -> None:
    a_reading(asked, None)

    found = meter_page(asked)

    # A meter must have a number, which the text is read in the place of.
    assert spoken(found)["aria-valuenow"] == "0"
    assert spoken(found)["aria-valuetext"] == "unknown"
    assert with_class(found, "meter-fill") == []
    assert words(found).startswith("unknown / 1,000 unknown")
    assert "%" not in found.text


def test_with_nothing_known_not_one_digit_is_shown() -> None:
    found = drawn(Meter(level="unknown"))

    assert not any(sign.isdigit() for sign in found.text)
    assert with_class(found, "meter-tick") == []


def test_without_a_window_only_the_reported_tokens_are_shown(asked: Dialog) -> None:
    asked.llm.context_length = None
    asked.llm.save()
    a_reading(asked, 250)

    found = meter_page(asked)

    assert words(found).startswith("250 unknown")
    assert (spoken(found)["aria-valuenow"], spoken(found)["aria-valuetext"]) == ("0", "unknown")
    assert "%" not in found.text


def test_ticks_stand_at_the_ceilings_unless_they_are_outside_the_window(dialog: Dialog) -> None:
    found = meter_page(dialog)
    assert [attrs.get("x") for attrs in with_class(found, "meter-tick-optimal")] == ["50.0", None]
    assert [attrs.get("stroke-dashoffset") for attrs in with_class(found, "meter-tick-critical")] == [None, "-90.0"]
    # The button names the drawer that it opens.
    (button,) = with_class(found, "meter-button")
    assert (button["aria-controls"], button["aria-expanded"], button["type"]) == ("health-drawer", "false", "button")

    dialog.llm.optimal_max_tokens = 100_000
    dialog.llm.save()

    found = meter_page(dialog)
    assert with_class(found, "meter-tick-optimal") == []
    assert len(with_class(found, "meter-tick-critical")) == 2


def test_large_counts_are_short_on_the_meter_and_whole_in_the_panel(asked: Dialog) -> None:
    asked.llm.context_length = 128_000
    asked.llm.save()
    a_reading(asked, 41_234)

    assert words(meter_page(asked)).startswith("41.2k / 128k 32 %")
    assert "41,234" in panel(asked).text
    assert "128,000" in panel(asked).text


def test_the_panel_says_every_number_and_where_it_is_from(asked: Dialog) -> None:
    """A zero that was reported is a zero."""
    asked.llm.optimal_max_tokens = 750
    asked.llm.save()
    a_reading(asked, 250, cached_tokens=0)
    assert "of them cached 0reported" in words(panel(asked))
    assert "Caution above 750default: three quarters of the window" in words(panel(asked))
    asked.llm.optimal_max_tokens = 500
    asked.llm.save()
    a_reading(asked, 250, cached_tokens=40)

    text = words(panel(asked))

    assert "healthy 25 % of the context window" in text
    assert "Prompt tokens 250reported by the provider" in text
    assert "of them cached 40reported by the provider" in text
    assert "Completion tokens 7reported by the provider" in text
    assert "Context window 1,000set by an admin" in text
    assert "Caution above 500configured" in text
    assert "Critical above 900default: 90 % of the window" in text
    assert "scripted/tinygeneration 2" in text


def test_what_nobody_knows_is_called_unknown() -> None:
    context = {"meter": Meter(level="unknown"), "history": (), "chart": chart(())}

    text = words(Page(render_to_string("dialogs/_health_panel.html", context)))

    assert text.count("unknown") == 7
    assert not any(sign.isdigit() for sign in text)


def test_before_the_first_answer_the_panel_says_why(dialog: Dialog) -> None:
    assert "Nothing is measured yet" in panel(dialog).text


def test_without_usage_the_panel_says_so_and_what_was_measured_last(asked: Dialog) -> None:
    a_reading(asked, 250)
    a_reading(asked, None)

    text = words(panel(asked))

    assert "Dominds does not guess." in text
    assert "Last measured: 250 prompt tokens, 25 %, in generation 1." in text


def test_without_a_window_the_panel_says_what_to_do(asked: Dialog) -> None:
    LLM.objects.update(context_length=None)
    asked.llm.refresh_from_db()
    a_reading(asked, 250)

    assert "The context window of this LLM is not known." in panel(asked).text


def test_after_a_failure_the_panel_names_the_generation_it_shows(asked: Dialog) -> None:
    a_reading(asked, 250)
    a_generation(asked, status="failed", finished_at="2026-01-01T00:00:00Z")

    assert "From generation 1: a later one failed" in panel(asked).text


def test_after_a_change_of_llm_the_panel_waits_for_its_first_answer(asked: Dialog) -> None:
    a_reading(asked, 250)
    larger = LLM.objects.create(provider=asked.llm.provider, model_id="large", context_length=128_000)

    text = words(panel(change_llm(dialog=asked, llm=larger)))

    assert "Another LLM answers now." in text
    assert "Last measured: 250 prompt tokens" in text
    assert "Context window 128,000" in text


def begin_anew(dialog: Dialog) -> None:
    start_course(dialog=dialog)


def compact(dialog: Dialog) -> None:
    an_applied_run(dialog)


def undo_what_was_compacted(dialog: Dialog) -> None:
    run = an_applied_run(dialog)
    a_reading(dialog, 501)
    undo(dialog=dialog, run_id=run.pk, by=dialog.owner)


@pytest.mark.parametrize(
    ("leave", "said"),
    [
        (begin_anew, "earlier course"),
        (compact, "before compaction"),
        (undo_what_was_compacted, "before undoing"),
    ],
)
def test_a_number_of_a_context_that_was_left_says_of_which(
    as_alice: Client, asked: Dialog, leave: Callable[[Dialog], None], said: str
) -> None:
    a_reading(asked, 501)
    asked.refresh_from_db()
    leave(asked)

    of_dialog = page(as_alice, f"/dialogs/{asked.pk}/")
    of_list = page(as_alice, "/")

    assert spoken(of_dialog)["aria-valuetext"] == f"501, {said}"
    assert f"501 / 1,000 50 % {said}" in words(of_dialog)
    assert f"501 / 1,000 50 % {said}" in words(of_list)


def test_what_was_undone_and_redone_since_is_measured_as_it_is(as_alice: Client, asked: Dialog) -> None:
    run = an_applied_run(asked)
    a_reading(asked, 501)

    undo(dialog=asked, run_id=run.pk, by=asked.owner)
    assert "Measured before the compaction was undone" in panel(asked).text
    redo(dialog=asked, run_id=run.pk, by=asked.owner)

    assert dialog_meter(asked).stale == ""
    assert "before" not in words(page(as_alice, "/"))


def test_the_table_says_what_the_chart_draws(asked: Dialog) -> None:
    for prompt_tokens in (100, None, 1070):
        a_reading(asked, prompt_tokens)

    html = panel_html(asked)

    assert re.findall(r"<td[^>]*>([^<]*)</td>", html) == [
        *("3", "1,070", "1,000", "critical"),
        *("2", "unknown", "–", "unknown"),
        *("1", "100", "1,000", "healthy"),
    ]
    assert len(with_class(Page(html), "chart-dot")) == 2
    assert len(with_class(Page(html), "chart-gap")) == 1


def limited(dialog: Dialog, *, limit: int = 4_096) -> Dialog:
    LLM.objects.update(context_length=8_192, compaction="automatic")
    Agent.objects.update(context_budget=True, context_limit=limit)
    return Dialog.objects.select_related("agent", "llm__provider", "current_leaf__course").get(pk=dialog.pk)


def test_a_limit_below_the_window_stands_in_the_tooltips_of_meter_and_lists_in_the_panel_and_is_heard(
    as_alice: Client, asked: Dialog
) -> None:
    shown = limited(asked)

    (button,) = with_class(meter_page(shown), "meter-button")

    assert "a limit of 4,096 tokens, set by an admin" in str(button["title"])
    assert "a limit of 4,096 tokens" in spoken(meter_page(shown))["aria-valuetext"]
    assert "Limit 4,096set by an admin; compaction goes by it" in words(panel(shown))
    a_reading(shown, 501)
    row, beside = (page(as_alice, path) for path in ("/", f"/dialogs/{asked.pk}/"))
    assert "a limit of 4,096 tokens" in str(with_class(row, "row-meter")[0]["title"])
    assert "a limit of 4,096 tokens" in str(with_class(beside, "sidebar-meter")[0]["title"])


def test_a_limit_that_a_refusal_taught_stands_in_the_tooltips_and_in_the_panel(as_alice: Client, asked: Dialog) -> None:
    LLM.objects.update(context_length=8_192, compaction="automatic")
    LlmBounds.objects.create(llm=asked.llm, refused=6_000, refused_at=timezone.now(), accepted=4_000)
    a_reading(asked, 501)
    shown = Dialog.objects.select_related("agent", "llm__provider", "current_leaf__course").get(pk=asked.pk)

    (button,) = with_class(meter_page(shown), "meter-button")

    assert re.search("a limit of ≈[45],[0-9]{3} tokens, learned from use", str(button["title"]))
    assert "learned from use; compaction goes by it" in words(panel(shown))
    row, beside = (page(as_alice, path) for path in ("/", f"/dialogs/{asked.pk}/"))
    assert "learned from use" in str(with_class(row, "row-meter")[0]["title"])
    assert "learned from use" in str(with_class(beside, "sidebar-meter")[0]["title"])


def test_a_window_that_a_refusal_named_says_so_in_the_panel(asked: Dialog) -> None:
    LLM.objects.update(context_length=8_192, context_length_source="refusal")
    asked.llm.refresh_from_db()

    assert "Context window 8,192learned from a refusal" in words(panel(asked))


@pytest.mark.parametrize("how", ["no limit", "a limit above the window", "compaction is off"])
def test_no_limit_is_named_where_compaction_does_not_go_by_one(asked: Dialog, how: str) -> None:
    shown = limited(asked, limit=10_000 if how == "a limit above the window" else 4_096)
    shown.agent.context_budget = how != "no limit"
    shown.compaction = "off" if how == "compaction is off" else shown.compaction

    assert dialog_meter(shown).limit is None
    assert "Limit" not in words(panel(shown))
