"""The budget in the health panel: fetched apart, in words, and every estimate with its mark."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils.translation import override

from dialogs.models import LLM, Dialog, Message
from dialogs.reasons import in_words
from dialogs.templatetags.context_tags import percent
from health.compaction.config import ContextConfig, LlmLimit
from health.limits import Term, effective_limit
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.views.pages import HTMX, Page, page


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    return a_history(dialog, pairs=6)


def url(dialog: Dialog) -> str:
    return f"/dialogs/{dialog.pk}/budget/"


def words(found: Page) -> str:
    return " ".join(found.text.split())


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


def test_it_says_how_the_dialog_is_kept_from_overflowing(as_alice: Client, dialog: Dialog) -> None:
    assert "compaction is off for this LLM" in words(page(as_alice, url(dialog)))

    LLM.objects.update(context_length=None, compaction="automatic")
    assert "its window is unknown: it is learned from the first refusal" in words(page(as_alice, url(dialog)))


def test_what_is_too_much_is_said(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=40)
    guard(dialog)

    assert re.search(r"≈[\d,]+ / 3,500 · ≈[\d,]+ too many", words(page(as_alice, url(dialog))))


def test_without_javascript_it_is_a_page_with_a_way_back(as_alice: Client, dialog: Dialog) -> None:
    found = page(as_alice, url(dialog))

    assert f"/dialogs/{dialog.pk}/" in found.links()
    assert found.offences == []


def test_the_budget_of_another_is_not_there(as_bob: Client, dialog: Dialog) -> None:
    assert as_bob.get(url(dialog)).status_code == 404


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
