"""Providers in the admin: a key goes in and never comes out; addresses are checked; actions answer in words."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.common.secrets import decrypt
from dialogs.models import LLM, Provider
from tests.dialogs.admin.conftest import told
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import page

NO_LLMS = {"llms-TOTAL_FORMS": "0", "llms-INITIAL_FORMS": "0"}
GOOD = {"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:1234/v1", "enabled": "on", **NO_LLMS}


def change(client: Client, provider: Provider, **fields: str) -> Any:
    data = {"name": provider.name, "kind": provider.kind, "base_url": provider.base_url, "enabled": "on"}
    return client.post(f"/admin/dialogs/provider/{provider.pk}/change/", data | NO_LLMS | fields)


def test_an_address_may_lack_what_all_begin_with_and_how_many_requests_it_gets_at_once_is_set(staff: Client) -> None:
    staff.post("/admin/dialogs/provider/add/", GOOD | {"base_url": "127.0.0.1:1234/v1", "max_concurrent": "2"})

    added = Provider.objects.get(name="local")
    assert (added.base_url, added.max_concurrent) == ("http://127.0.0.1:1234/v1", 2)


def test_a_stored_key_is_never_shown_kept_by_saving_without_one_and_can_be_removed(
    staff: Client, provider: Provider
) -> None:
    change(staff, provider, new_key="sk-very-secret")
    shown = staff.get(f"/admin/dialogs/provider/{provider.pk}/change/").content.decode()
    assert "sk-very-secret" not in shown
    assert Provider.objects.get().api_key_encrypted not in shown
    assert '<div class="readonly">stored</div>' in shown

    change(staff, provider, label="Renamed")
    assert decrypt(Provider.objects.get(label="Renamed").api_key_encrypted) == "sk-very-secret"

    change(staff, provider, clear_key="on")
    assert Provider.objects.get().api_key_encrypted == ""


def test_of_two_who_change_a_provider_at_once_neither_undoes_what_the_other_wrote(
    staff: Client, provider: Provider
) -> None:
    address = f"/admin/dialogs/provider/{provider.pk}/change/"
    form = sent(page(staff, address), "provider_form")
    change(staff, provider, new_key="sk-very-secret", base_url="other.json", enabled="")

    staff.post(address, form | {"label": ["Renamed"]})

    provider.refresh_from_db()
    assert (provider.label, provider.base_url, provider.enabled) == ("Renamed", "other.json", False)
    assert decrypt(provider.api_key_encrypted) == "sk-very-secret"


@pytest.mark.parametrize(("address", "window"), [("https://other.test/v1", None), ("https://host.test/api/v1", 8192)])
def test_what_one_server_said_of_its_models_does_not_hold_for_another(
    staff: Client, provider: Provider, llm: LLM, address: str, window: int | None
) -> None:
    change(staff, provider, kind="openai", base_url="https://host.test/v1")
    LLM.objects.update(context_length=8192, context_length_source="server", limits_read_at=timezone.now())
    form = sent(page(staff, f"/admin/dialogs/provider/{provider.pk}/change/"), "provider_form")

    response = staff.post(f"/admin/dialogs/provider/{provider.pk}/change/", form | {"base_url": [address]})

    assert LLM.objects.get().context_length == window
    assert len(told(response)) == (2 if window is None else 1)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"base_url": "https://thief.test/v1"}, ""),
        ({"base_url": "http://host.test/v1"}, ""),
        ({"base_url": "https://host.test:8443/v1"}, ""),
        ({"base_url": "https://host.test.org/v1"}, ""),
        # Only the path is another, or the key is written with the new address.
        ({"base_url": "https://host.test/api/v1"}, "sk-very-secret"),
        ({"base_url": "https://HOST.test/v1/"}, "sk-very-secret"),
        ({"base_url": "https://other.test/v1", "new_key": "sk-new"}, "sk-new"),
    ],
)
def test_a_key_is_not_sent_to_another_server_than_it_was_written_for(
    staff: Client, changed: dict[str, str], key: str
) -> None:
    staff.post("/admin/dialogs/provider/add/", GOOD | {"base_url": "https://host.test/v1", "new_key": "sk-very-secret"})

    response = change(staff, Provider.objects.get(), **changed)

    stored = Provider.objects.get().api_key_encrypted
    assert (stored and decrypt(stored)) == key
    assert ("The stored key was removed" in " ".join(told(response))) is (key == "")


@pytest.mark.parametrize(
    "variable",
    ["PATH", "DOMINDS_SECRET_KEY", "DATABASE_URL", "DOMINDS_ADMIN_PASSWORD", "AWS_SECRET_ACCESS_KEY", "HOME"],
)
def test_a_variable_that_is_no_providers_key_is_refused(staff: Client, variable: str) -> None:
    page = staff.post("/admin/dialogs/provider/add/", GOOD | {"api_key_env": variable}).content.decode()

    assert "is not a variable that a provider&#x27;s key is read from" in page
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"base_url": "not a url"}, "no blanks"),
        ({"base_url": "ftp://host/"}, "http:// or https://"),
        ({"base_url": "http://user:pass@host/"}, "Leave user name and password out"),
        ({"kind": "scripted", "base_url": "../outside.json"}, "inside the data folder"),
        ({"new_key": "two words"}, "one word"),
        ({"max_concurrent": "0"}, "greater than or equal to 1"),
        ({"new_key": "sk-1", "clear_key": "on"}, "Either write a new key or remove"),
    ],
)
def test_a_wrong_field_is_told_beside_it(fields: dict[str, str], complaint: str, staff: Client) -> None:
    page = staff.post("/admin/dialogs/provider/add/", GOOD | fields)

    assert complaint in page.content.decode()
    assert not Provider.objects.exists()


def test_the_scripted_kind_is_offered_only_where_scripts_are_played(staff: Client, settings: Any) -> None:
    settings.DOMINDS_SCRIPTED = False

    page = staff.get("/admin/dialogs/provider/add/").content.decode()

    assert "llama.cpp" in page
    assert "scripted" not in page


def test_the_list_says_where_each_key_comes_from(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    Provider.objects.create(name="a", kind="openai", base_url="http://a.test", api_key_env="KEY_OF_A")
    Provider.objects.create(name="b", kind="openai", base_url="http://b.test", api_key_env="KEY_OF_B")
    monkeypatch.setenv("KEY_OF_A", "x")

    page = staff.get("/admin/dialogs/provider/").content.decode()

    assert "from KEY_OF_A" in page
    assert "KEY_OF_B is not set" in page


def test_the_connection_test_answers_in_words(staff: Client, playing: Provider) -> None:
    gone = Provider.objects.create(name="gone", kind="openai", base_url="http://127.0.0.1:9/v1")

    chosen = {"action": "test_connection", "_selected_action": [str(playing.pk), str(gone.pk)]}
    response = staff.post("/admin/dialogs/provider/", chosen)

    lines = told(response)
    assert any(line.startswith("“scripted”: The provider answers") and "1 model" in line for line in lines)
    assert any(line.startswith("“gone”: ") and "answers" not in line for line in lines)


def test_limits_are_read_from_the_list_of_providers(staff: Client, playing: Provider) -> None:
    LLM.objects.update(context_length=None, context_length_source="")

    response = staff.post(
        "/admin/dialogs/provider/", {"action": "read_limits_now", "_selected_action": str(playing.pk)}
    )

    assert LLM.objects.get().context_length == 4096
    assert told(response) == ["“scripted/tiny”: Context window: 4,096 tokens, read from the server."]


def test_the_buttons_of_the_form_save_and_then_call(staff: Client, playing: Provider) -> None:
    response = change(staff, playing, label="Saved too", _test="1")

    assert Provider.objects.get().label == "Saved too"
    assert told(response)[0].startswith("“Saved too”: The provider answers")
    assert response["Location"].endswith(f"/{playing.pk}/change/")


def test_a_server_that_says_nothing_ends_the_wait(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialogs.admin.base.PROBE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        provider = Provider.objects.create(name="silent", kind="openai", base_url=address)

        response = change(staff, provider, _test="1")

    assert told(response) == ["“silent”: no answer within 0.2 seconds"]
