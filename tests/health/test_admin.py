"""The admin's pages about compaction: numbers, read only, and no word of a dialog."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import Dialog, Message
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun, ContextEvent, ContextSettings, LlmCalibration, SettingsChange

WORDS = "My secret garden"
TABLES = ("contextsettings", "settingschange", "compactionrun", "contextevent", "llmcalibration")


@pytest.fixture
def staff(client: Client, sam: User) -> Client:
    client.force_login(sam)
    return client


@pytest.fixture
def run(dialog: Dialog) -> CompactionRun:
    """A compaction with Alice's words in every field that could show them, and all that comes with it."""
    post_message(dialog=dialog, content=WORDS)
    dialog.title = WORDS
    dialog.save()
    run = CompactionRun.objects.create(
        dialog=dialog, course=dialog.courses.get(), leaf=Message.objects.get(), turn=1, through_seq=1,
        trigger="manual", status="applied", limit_tokens=5000, estimated_before=4321, estimated_after=1234,
        messages_before=41, messages_after=9, chain=["summarize_old"], focus=WORDS, reason=WORDS,
        why={"text": WORDS}, phase=WORDS,
        steps=[{"phase": "summarize_old", "estimated_before": 4321, "estimated_after": 1234, "note": WORDS}],
        view=[WORDS], coverage=[WORDS], losses=[{"text": WORDS}], ledger=[WORDS], warnings=[WORDS],
        priority_area=WORDS,
    )  # fmt: skip
    facts = {"estimated": 4321, "cause": f"ProviderError: {WORDS}", "said": WORDS}
    ContextEvent.objects.create(code="PRUNER_FAILED", dialog=dialog, run=run, facts=facts)
    ContextSettings.objects.create(pk=1, pruning_agent=dialog.agent)
    SettingsChange.objects.create(key="min_limit", before="3500", after="4000")
    LlmCalibration.objects.create(llm=dialog.llm, samples=[[100, 100, 110], [200, 220, 220]])
    return run


@pytest.mark.parametrize("table", TABLES)
def test_staff_read_numbers_and_no_word(staff: Client, run: CompactionRun, table: str) -> None:
    listed = staff.get(f"/admin/health/{table}/")
    row = {"llmcalibration": run.dialog.llm_id}.get(table) or 1
    row = ContextEvent.objects.get().pk if table == "contextevent" else row
    row = run.pk if table == "compactionrun" else row
    row = SettingsChange.objects.get().pk if table == "settingschange" else row
    shown = staff.get(f"/admin/health/{table}/{row}/change/")

    assert (listed.status_code, shown.status_code) == (200, 200)
    assert WORDS not in listed.content.decode() + shown.content.decode()


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_changed_there(staff: Client, run: CompactionRun, table: str) -> None:
    assert staff.get(f"/admin/health/{table}/add/").status_code == 403
    assert staff.post(f"/admin/health/{table}/1/delete/", {"post": "yes"}).status_code in {302, 403}
    assert CompactionRun.objects.exists()


def test_estimates_carry_their_sign(staff: Client, run: CompactionRun) -> None:
    page = staff.get("/admin/health/compactionrun/").content.decode()

    assert "≈4,321 → ≈1,234" in page
    assert "41 → 9" in page


def test_an_event_tells_numbers_and_the_kind_of_error(staff: Client, run: CompactionRun) -> None:
    assert "estimated 4,321, ProviderError" in staff.get("/admin/health/contextevent/").content.decode()


def test_the_numbers_of_an_event_are_named_in_the_language_of_the_page(staff: Client, run: CompactionRun) -> None:
    ContextEvent.objects.update(estimated=4321, facts={"failures": 3, "of_another_version": 7})

    page = staff.get("/admin/health/contextevent/", headers={"accept-language": "zh-hans"}).content.decode()

    assert "估算 4,321, 失败次数 3, of_another_version 7" in page


def test_how_exact_a_count_is_is_told_in_words_also_in_the_filter(staff: Client, run: CompactionRun) -> None:
    CompactionRun.objects.update(grade="exact")
    other = CompactionRun.objects.get()
    other.pk, other.grade = None, "rough"
    other.save()

    page = staff.get("/admin/health/compactionrun/", headers={"accept-language": "zh-hans"}).content.decode()

    assert page.count("精确：模型自己的词表") == page.count("粗略：按字符") == 2
    assert ">exact<" not in page


def test_the_newest_compaction_is_listed_first(staff: Client, run: CompactionRun) -> None:
    first, run.pk, run.estimated_before = run.pk, None, 9876
    run.save()

    page = staff.get("/admin/health/compactionrun/").content.decode()

    assert page.index(f"compactionrun/{run.pk}/") < page.index(f"compactionrun/{first}/")


def test_the_settings_lead_to_their_page(staff: Client, run: CompactionRun) -> None:
    assert 'href="/settings/context/"' in staff.get("/admin/health/contextsettings/").content.decode()


def test_a_calibration_tells_its_ratio(staff: Client, run: CompactionRun) -> None:
    assert "1.10" in staff.get("/admin/health/llmcalibration/").content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "compactionrun/?focus__startswith=M",
        "compactionrun/?reason__contains=secret",
        "compactionrun/?losses__contains=secret",
        "compactionrun/?dialog__title__contains=secret",
        "contextevent/?facts__said__contains=secret",
        "contextevent/?run__focus__contains=secret",
    ],
)
def test_no_text_can_be_guessed_from_an_address(staff: Client, run: CompactionRun, address: str) -> None:
    assert staff.get(f"/admin/health/{address}").status_code == 400
