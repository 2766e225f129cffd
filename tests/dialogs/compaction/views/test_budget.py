"""The budget in the health panel: fetched apart, in words, and every estimate with its mark."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from dialogs.common.errors import in_words
from dialogs.models import LLM, Dialog, LlmBounds, Message
from dialogs.templatetags.context_tags import percent
from dialogs.turns.writes.messages import post_message
from health.compaction.config import ContextConfig, LlmLimit
from health.limits import Term, effective_limit
from tests.builders import an_answer
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.pages.views.pages import HTMX, Page, page


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    return a_history(dialog, pairs=6)


def url(dialog: Dialog) -> str:
    return f"/dialogs/{dialog.pk}/budget/"


def words(found: Page) -> str:
    return " ".join(found.text.split())


@pytest.mark.parametrize(
    ("reported", "estimated", "told"),
    [
        (640, 600, "Last request 640as reported; the categories came to ≈600, so 40 belong to none"),
        (600, 601, "Last request 600as reported; the categories came to ≈601 "),  # and nothing is said of a rest
    ],
)
def test_once_something_was_measured_it_says_how_that_and_the_estimate_differ(
    as_alice: Client, dialog: Dialog, reported: int, estimated: int, told: str
) -> None:
    post_message(dialog=dialog, content="Hello")
    difference = "Estimated for the next request. The meter shows what the provider measured of the last one."
    before = words(page(as_alice, url(dialog), headers=HTMX))
    made = an_answer(dialog, "Hi.").generation
    made.prompt_tokens, made.manifest = reported, {"estimated": estimated}
    made.save()

    text = words(page(as_alice, url(dialog), headers=HTMX))

    assert told in text
    assert (difference in before, difference in text) == (False, True)


def test_the_panel_fetches_it_when_it_is_looked_at(as_alice: Client, dialog: Dialog, history: list[Message]) -> None:
    found = page(as_alice, f"/dialogs/{dialog.pk}/")

    (slot,) = [attrs for _tag, attrs in found.tags if attrs.get("id") == "budget"]
    assert str(slot["hx-get"]).startswith(url(dialog))
    assert slot["hx-trigger"] == "intersect once"
    assert str(dialog.current_leaf_id) in str(slot["hx-get"])
    assert url(dialog) in found.links()


def test_every_estimate_carries_its_mark(as_alice: Client, dialog: Dialog, history: list[Message]) -> None:
    guard(dialog, limit=5000)

    found = page(as_alice, url(dialog), headers=HTMX)

    text = words(found)
    assert re.search(r"≈[\d,]+ / 5,000 · ≈[\d,]+ free", text)
    assert not re.search(r"(?<![≈\d,])\d[\d,]* (free|too many)", text)
    assert len(re.findall(r"≈", text)) >= 11
    assert "Effective limit 5,000" in text
    assert "Limit of the agent 5,000set for this agent" in text
    assert found.offences == []
    assert not [tag for tag, _attrs in found.tags if tag == "html"]


def test_it_says_how_the_dialog_is_kept_from_overflowing_without_javascript_on_a_page_with_a_way_back(
    as_alice: Client, dialog: Dialog
) -> None:
    found = page(as_alice, url(dialog))
    assert "compaction is off for this LLM" in words(found)
    assert f"/dialogs/{dialog.pk}/" in found.links()
    assert found.offences == []

    LLM.objects.update(context_length=None, compaction="automatic")
    assert "its window is unknown: it is learned from the first refusal" in words(page(as_alice, url(dialog)))


def test_what_is_too_much_is_said(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=40)
    guard(dialog)

    assert re.search(r"≈[\d,]+ / 3,500 · ≈[\d,]+ too many", words(page(as_alice, url(dialog))))


CONFIG = ContextConfig(per_llm=(LlmLimit(type="tiny", limit=4000, follow_default=True),))
EVERY = (
    effective_limit(CONFIG, agent_limit=900, is_p1=True, window=2000, reserve=200),
    effective_limit(CONFIG, llm_type="tiny"),
    effective_limit(CONFIG, window=1000, reserve=100),
)


@pytest.mark.parametrize("term", [term for limit in EVERY for term in limit.trace], ids=lambda term: term.source)
def test_every_source_of_a_limit_has_chinese_words(term: Term) -> None:
    with override("zh-hans"):
        assert re.search(r"[\u4e00-\u9fff]", in_words(term.why))
    assert in_words(term.why) == term.source


def test_a_refused_limit_has_chinese_words() -> None:
    reason = EVERY[2].refused

    with override("zh-hans"):
        assert re.search(r"[\u4e00-\u9fff].*900.*1,024", in_words(reason))
    assert in_words(reason) == str(reason)


@pytest.mark.parametrize(("share", "text"), [(1.0, "100"), (0.9999, "99"), (0.934, "93"), (0.0, "0")])
def test_a_share_is_whole_only_where_all_of_it_is(share: float, text: str) -> None:
    assert percent(share) == text


# --- What was learned of the window ----------------------------------------------------------------------------------


READ, NOW = datetime(2026, 11, 23, 1, 2, tzinfo=UTC), timezone.now()


def learned(dialog: Dialog, **fields: object) -> None:
    LlmBounds.objects.update_or_create(llm=dialog.llm, defaults=fields)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"accepted": 6000, "accepted_at": READ, "refused": 9000, "refused_at": NOW, "words": "too many <tokens>"},
            [
                "Largest prompt read 6,000reported by the provider · 2026-11-23 01:02 UTC",
                "Smallest request refused ≈9,000with the answer that was asked for",
                "The server said: too many <tokens>",
            ],
        ),
        (
            {"refused": 9000, "refused_at": NOW - timedelta(days=2)},
            ["A bound is older than a day, so it is doubted"],
        ),
        (
            {"cut_sent": 9000, "cut_read": 4096, "cut_at": NOW},
            ["Read only a part 4,096 of ≈9,000", "This server cuts a prompt that does not fit"],
        ),
        ({"reports_part": True}, ["The server reports only part of the prompt: the level stays unknown"]),
    ],
    ids=["both bounds, with dates and the server's words", "a doubted bound", "a confirmed cut", "reports only a part"],
)
def test_what_was_learned_of_a_window_is_told(
    as_alice: Client, dialog: Dialog, fields: dict[str, object], told: list[str]
) -> None:
    assert "Learned of its window" not in words(page(as_alice, url(dialog))), "nothing yet, so nothing to forget"
    learned(dialog, **fields)

    text = words(page(as_alice, url(dialog)))

    assert [sentence for sentence in told if sentence not in text] == []
    assert ("doubted" in text) == ("doubted" in told[0])


def test_staff_make_it_forgotten(as_alice: Client, alice: User, dialog: Dialog) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    learned(dialog, accepted=6000, window=8192, refused_at=timezone.now())
    LLM.objects.update(context_length=8192, context_length_source="refusal")

    assert "for everybody who speaks with" in words(page(as_alice, url(dialog)))
    found = as_alice.post(f"{url(dialog)}forget-window/", headers=HTMX, follow=True)

    assert "Learned of its window" not in found.content.decode()
    assert not LlmBounds.objects.exists()
    assert LLM.objects.get().context_length is None
    assert "forgotten" in LogEntry.objects.get(object_id=str(dialog.llm_id)).change_message


def test_others_are_told_who_can_and_are_refused(as_alice: Client, dialog: Dialog) -> None:
    learned(dialog, accepted=6000, accepted_at=timezone.now())

    assert "Staff can make it forgotten." in words(page(as_alice, url(dialog)))
    assert as_alice.post(f"{url(dialog)}forget-window/").status_code == 403
    assert LlmBounds.objects.exists()


def test_an_answer_that_got_less_room_than_it_asked_for_or_to_a_part_of_the_prompt_is_told(
    as_alice: Client, dialog: Dialog
) -> None:
    post_message(dialog=dialog, content="Go.")
    options = {"asked": 4096, "options": {"max_output_tokens": 1200}}
    an_answer(dialog, "Half of it", finish_reason="length", manifest=options)

    assert "The last answer could have 1,200 tokens at most instead of 4,096" in words(page(as_alice, url(dialog)))
    assert "1,200 tokens at most instead of 4,096, so that" in words(page(as_alice, f"/dialogs/{dialog.pk}/"))

    an_answer(dialog, "What rule?", manifest={"cut": True})

    assert "only a part of the prompt was read" in words(page(as_alice, f"/dialogs/{dialog.pk}/"))
