"""LLMs in the admin: whose number is in force, what an empty field inherits, and warnings that are no errors."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.api.writes.client_turns import direct_agent
from dialogs.models import LLM, Agent, Dialog, LlmBounds, Message, Provider
from dialogs.pages.writes import create_dialog
from tests.builders import a_generation
from tests.dialogs.admin.conftest import told
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import page


def page_of(llm: LLM) -> str:
    return f"/admin/dialogs/llm/{llm.pk}/change/"


def save(client: Client, llm: LLM, **fields: str) -> Any:
    data = {"provider": str(llm.provider_id), "model_id": llm.model_id, "tool_calling": "auto", "enabled": "on"}
    data |= {"compaction": llm.compaction}
    response = client.post(page_of(llm), data | fields)
    llm.refresh_from_db()
    return response


def detect(llm: LLM, window: int | None) -> None:
    llm.context_length, llm.context_length_source, llm.detected_context_length = window, "server", window
    llm.save()


@pytest.mark.parametrize(
    ("known", "typed", "window"),
    [
        ({"server": 8192}, "4096", (4096, "admin")),
        # Saving something else leaves the window the server's.
        ({"server": 8192}, "8192", (8192, "server")),
        # Emptied it falls back to what the server said, else to what the catalogue said, else to nothing.
        ({"said": 8192, "file": 2048}, "", (8192, "server")),
        ({"file": 2048}, "", (2048, "file")),
        ({}, "", (None, "")),
    ],
)
def test_a_window_typed_by_hand_is_the_admins_and_an_emptied_one_falls_back(
    staff: Client, llm: LLM, known: dict[str, int], typed: str, window: tuple[int | None, str]
) -> None:
    if "server" in known:
        detect(llm, known["server"])
    llm.detected_context_length = known.get("server", known.get("said"))
    llm.catalogue_values = {"context_length": known["file"]} if "file" in known else {}
    llm.save()

    save(staff, llm, context_length=typed, label="Tiny")

    assert (llm.label, llm.context_length, llm.context_length_source) == ("Tiny", *window)


def test_a_page_that_stood_open_does_not_take_back_what_the_server_says_since(staff: Client, llm: LLM) -> None:
    detect(llm, 8192)
    form = sent(page(staff, page_of(llm)), "llm_form")
    detect(llm, 4096)

    staff.post(page_of(llm), form | {"label": ["Tiny"]})

    llm.refresh_from_db()
    assert (llm.label, llm.context_length, llm.context_length_source) == ("Tiny", 4096, "server")


def test_empty_fields_say_what_they_inherit(staff: Client, llm: LLM) -> None:
    llm.optimal_max_tokens, llm.context_length = None, 200_000
    llm.save()

    page = staff.get(page_of(llm)).content.decode()

    assert 'placeholder="inherits 100,000"' in page
    assert 'placeholder="inherits 180,000"' in page
    assert 'placeholder="inherits 10"' in page


def test_detected_and_configured_window_stand_side_by_side(staff: Client, playing: Provider, llm: LLM) -> None:
    save(staff, llm, context_length="1000", _read_limits="1")

    page = staff.get(page_of(llm)).content.decode()

    assert 'value="1000"' in page
    assert "4,096 · " in page
    assert "1,000 (set by an admin)" in page


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"context_length": "1000", "optimal_max_tokens": "950"}, "” can never reach caution"),
        ({"context_length": "1000", "optimal_max_tokens": "5", "critical_max_tokens": "2000"}, "never reach critical"),
        ({"context_length": ""}, "is not known"),
    ],
)
def test_odd_limits_are_saved_with_a_warning(fields: dict[str, str], warning: str, staff: Client, llm: LLM) -> None:
    response = save(staff, llm, **fields)

    assert response.status_code == 302
    assert any(warning in line for line in told(response))


@pytest.mark.parametrize("typed", ["0", "99999999999"])  # the second is no number of PostgreSQL's, nor of a dialog file
def test_no_window_is_refused(typed: str, staff: Client, llm: LLM) -> None:
    response = save(staff, llm, context_length=typed)

    assert response.status_code == 200
    assert llm.context_length == 1000


def test_limits_are_read_from_the_list(staff: Client, playing: Provider, llm: LLM) -> None:
    unknown = LLM.objects.create(provider=playing, model_id="nobody")
    chosen = {"action": "read_limits_now", "_selected_action": [str(llm.pk), str(unknown.pk)]}

    response = staff.post("/admin/dialogs/llm/", chosen)

    lines = told(response)
    assert "“scripted/tiny”: The server says 4,096 tokens; the 1,000 set by an admin stay in force." in lines
    assert any(line.startswith("“scripted/nobody”: ") and "nobody" in line for line in lines)
    assert staff.get("/admin/dialogs/llm/").status_code == 200


def test_the_page_says_what_the_limits_make_of_the_newest_dialogs(staff: Client, dialog: Dialog, llm: LLM) -> None:
    question = Message.objects.create(
        dialog=dialog, course=dialog.courses.get(), seq=1, turn=1, role="user", origin="typed", content="Hello"
    )
    dialog.current_leaf = question
    for prompt_tokens in (400, 600, None):  # the newest measured one counts: above 500 is caution
        a_generation(dialog, status="finished", prompt_tokens=prompt_tokens)

    page = staff.get(page_of(llm)).content.decode()

    assert '<div class="readonly">caution</div>' in page


def test_tools_are_kept_from_an_llm(staff: Client, llm: LLM) -> None:
    save(staff, llm, tool_calling="off", tool_result_limit_bytes="500")

    assert (llm.tool_calling, llm.tool_result_limit_bytes) == ("off", 500)


def test_the_types_of_the_settings_can_be_chosen_with_what_they_mean(staff: Client, llm: LLM) -> None:
    llm.limit_type = "forgotten"
    llm.save()

    listed = staff.get(page_of(llm)).content.decode()
    save(staff, llm, limit_type="cloud_grok")

    assert "local_14b: 5,000, follows the default" in listed
    assert "cloud_grok: 8,000" in listed
    assert 'value="forgotten" selected' in listed
    llm.refresh_from_db()
    assert llm.limit_type == "cloud_grok"


def delete(client: Client, llm: LLM) -> str:
    """Asks for it and confirms; what the page before says."""
    url = f"/admin/dialogs/llm/{llm.pk}/delete/"
    asked = client.get(url).content.decode()
    client.post(url, {"post": "yes"})
    return asked


@pytest.mark.parametrize("from_the_list", [False, True])
def test_an_llm_that_clients_spoke_to_takes_its_hidden_agent_along(
    staff: Client, llm: LLM, from_the_list: bool
) -> None:
    direct_agent(llm)

    if from_the_list:
        chosen = {"action": "delete_selected", "_selected_action": [llm.pk], "post": "yes"}
        staff.post("/admin/dialogs/llm/", chosen)
    else:
        delete(staff, llm)

    assert (LLM.objects.count(), Agent.objects.count()) == (0, 0)


def test_with_dialogs_it_stays_and_they_are_counted(staff: Client, llm: LLM, alice: User) -> None:
    dialog = create_dialog(owner=alice, agent=direct_agent(llm))

    asked = delete(staff, llm)

    assert "1 dialog needs it" in asked
    assert "To switch it off instead, untick “Enabled”." in asked
    assert LLM.objects.get() == llm
    assert Dialog.objects.get() == dialog


def test_an_llm_of_an_agent_that_people_choose_stays(staff: Client, agent: Agent, llm: LLM) -> None:
    direct_agent(llm)

    asked = delete(staff, llm)

    assert "Helper" in asked
    assert Agent.objects.filter(llm=llm).count() == 2


def test_what_was_learned_of_a_window_is_shown_and_made_forgotten(staff: Client, llm: LLM) -> None:
    LlmBounds.objects.create(llm=llm, accepted=6000, accepted_at=timezone.now())
    assert "Largest prompt read" in staff.get(page_of(llm)).content.decode()

    save(staff, llm, context_length="1000", _forget_window="1")

    assert not LlmBounds.objects.exists()


def test_of_another_model_nothing_is_known_that_was_read_or_learned_of_the_one_before(staff: Client, llm: LLM) -> None:
    detect(llm, 8192)
    LLM.objects.filter(pk=llm.pk).update(limits_read_at=timezone.now(), tool_calling="refused")
    LlmBounds.objects.create(llm=llm, accepted=7000)

    response = save(staff, llm, model_id="another", context_length="8192")

    assert (llm.context_length, llm.context_length_source, llm.detected_context_length) == (None, "", None)
    assert (llm.tool_calling, LlmBounds.objects.exists()) == ("auto", False)
    said = " ".join(told(response))
    assert "“scripted/another”: what was read and learned of its window before is forgotten." in said


def test_of_another_model_the_window_that_was_typed_with_its_name_holds(staff: Client, llm: LLM) -> None:
    detect(llm, 8192)

    save(staff, llm, model_id="another", context_length="2048")

    assert (llm.context_length, llm.context_length_source) == (2048, "admin")


def test_compaction_is_switched_off_for_an_llm(staff: Client, llm: LLM) -> None:
    save(staff, llm, context_length="8192", compaction="off")

    assert llm.compaction == "off"
    assert "compaction is off for this LLM" in staff.get(page_of(llm)).content.decode()
