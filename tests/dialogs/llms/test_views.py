"""Connecting a server: what is found, what is added, what is said when it does not work, and who may."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dialogs.common.secrets import decrypt
from dialogs.models import LLM, Agent, Provider
from tests.dialogs.pages.views.pages import HTMX, Page, page
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.ollama import OllamaStandin
from tests.standins.serving import serving

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def alice(alice: User) -> User:
    """Here Alice is staff, and may add providers; Bob is not."""
    alice.is_staff = True
    alice.save()
    alice.user_permissions.add(Permission.objects.get(codename="add_provider"))
    return alice


@pytest.fixture
def studio() -> Iterator[tuple[LMStudioStandin, str]]:
    standin = LMStudioStandin(model="google/gemma-4")
    with serving(standin.app()) as url:
        yield standin, url


def found_at(client: Client, address: str, *, offer: str = "lmstudio", **more: str) -> Page:
    response = client.post("/connect/", {"offer": offer, "address": address, **more}, headers=HTMX)
    assert response.status_code == 200
    return Page(response.content.decode())


def add(client: Client, address: str, model: str = "google/gemma-4", *, offer: str = "lmstudio", **more: str) -> Page:
    fields = {"offer": offer, "address": address, "model": model, **more}
    return Page(client.post("/connect/add/", fields, headers=HTMX).content.decode())


# --- Who may -------------------------------------------------------------------------------------------------------


def test_bob_is_refused_and_sees_no_link(as_bob: Client, studio: tuple[LMStudioStandin, str]) -> None:
    fields = {"offer": "lmstudio", "address": studio[1], "model": "google/gemma-4"}

    statuses = [
        as_bob.get("/connect/").status_code,
        as_bob.post("/connect/", fields).status_code,
        as_bob.post("/connect/add/", fields).status_code,
    ]

    assert statuses == [403, 403, 403]
    assert not Provider.objects.exists()
    assert "/connect/" not in page(as_bob, "/").links()


def test_the_admins_list_of_providers_leads_to_the_form(as_sam: Client) -> None:
    assert "/connect/" in page(as_sam, "/admin/dialogs/provider/").links()


# --- The form ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offer", "address"),
    [
        ("lmstudio", "http://127.0.0.1:1234"),
        ("ollama", "http://127.0.0.1:11434"),
        ("llamacpp", "http://127.0.0.1:8080"),
        ("vllm", "http://127.0.0.1:8000/v1"),
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com"),
        ("hosted", "https://"),
        ("openrouter", "https://openrouter.ai/api/v1"),
        ("openai-compatible", "http://127.0.0.1:8000/v1"),
        ("nonsense", "http://127.0.0.1:1234"),
    ],
)
def test_each_kind_comes_with_its_usual_address(as_alice: Client, offer: str, address: str) -> None:
    found = page(as_alice, f"/connect/?offer={offer}")

    inputs = {attrs.get("name"): attrs for tag, attrs in found.tags if tag == "input"}
    assert inputs["address"]["value"] == address
    assert inputs["key"]["type"] == "password"
    assert found.offences == []


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"address": "ftp://host"}, "http:// or https://"),
        ({"address": ""}, "required"),
        ({"address": "http://u:p@host"}, "Leave user name and password out"),
        ({"address": DEAD, "key": "two words"}, "one word"),
    ],
)
def test_a_wrong_field_is_told_beside_it(as_alice: Client, fields: dict[str, str], complaint: str) -> None:
    response = as_alice.post("/connect/", {"offer": "lmstudio", **fields})

    assert complaint in response.content.decode()
    assert "two words" not in response.content.decode()


# --- What is found -------------------------------------------------------------------------------------------------


def test_what_is_loaded_is_told_with_where_it_was_read(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    found = found_at(as_alice, studio[1])

    assert "google/gemma-4 loaded" in " ".join(found.text.split())
    assert "Window: 4,096 tokens (of the loaded instance, /api/v1/models) · 131,072 at most" in " ".join(
        found.text.split()
    )
    assert "text-embedding-nomic" not in found.text
    assert not Provider.objects.exists()


def test_what_is_not_loaded_is_told_with_what_to_do(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    studio[0].loaded = False

    found = found_at(as_alice, studio[1])

    assert "Window: unknown" in found.text
    assert "Load it in LM Studio" in found.text


def test_ollama_tells_what_it_has_set_aside(as_alice: Client) -> None:
    with serving(OllamaStandin(allocated=8192).app()) as url:
        found = found_at(as_alice, url, offer="ollama")

    assert "Window: 8,192 tokens (set aside now, /api/ps) · 131,072 at most" in " ".join(found.text.split())


@pytest.mark.parametrize(("part", "is_found"), [("GEMMA", True), ("llama", False)])
def test_a_part_of_the_name_is_enough(
    as_alice: Client, studio: tuple[LMStudioStandin, str], part: str, is_found: bool
) -> None:
    found = found_at(as_alice, studio[1], part=part)

    assert ("Window:" in found.text) == is_found


def test_a_server_that_does_not_run_is_told_with_what_to_check(as_alice: Client) -> None:
    found = found_at(as_alice, DEAD)

    assert "This does not work yet" in found.text
    assert "Does the server run?" in found.text
    assert DEAD in found.text


def test_another_kind_of_server_is_told_apart(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    found = found_at(as_alice, studio[1], offer="ollama")

    assert "not as this kind of server does" in found.text


def test_a_wrong_key_is_told_and_never_shown(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    studio[0].key = "sk-right-key"

    found = as_alice.post(
        "/connect/", {"offer": "lmstudio", "address": studio[1], "key": "sk-wrong-key"}, headers=HTMX
    ).content.decode()

    assert "The server wants a key, or another one" in found
    assert "sk-wrong-key" not in found


# --- What is added -------------------------------------------------------------------------------------------------


def test_one_click_adds_what_one_can_chat_with(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    row = add(as_alice, studio[1])

    provider, llm, agent = Provider.objects.get(), LLM.objects.get(), Agent.objects.get()
    assert (provider.name, provider.kind, provider.base_url) == ("lmstudio", "lmstudio", studio[1])
    assert (llm.model_id, llm.context_length, llm.context_length_source) == ("google/gemma-4", 4096, "server")
    assert agent.llm == llm
    assert "added" in row.text
    begun = as_alice.post("/dialogs/new/", {"agent": agent.slug})
    assert begun.status_code == 302


@pytest.mark.parametrize("path", ["", "/", "/v1", "/api/v1"])
def test_the_server_is_added_once_however_its_address_is_written(
    as_alice: Client, studio: tuple[LMStudioStandin, str], path: str
) -> None:
    add(as_alice, studio[1])

    add(as_alice, studio[1] + path)

    assert (Provider.objects.count(), LLM.objects.count(), Agent.objects.count()) == (1, 1, 1)
    assert "New dialog with google/gemma-4" in str(found_at(as_alice, studio[1] + path).tags)


def test_a_second_server_of_a_kind_gets_a_name_of_its_own(
    as_alice: Client, studio: tuple[LMStudioStandin, str]
) -> None:
    Provider.objects.create(name="lmstudio", kind="lmstudio", base_url=DEAD)

    add(as_alice, studio[1])

    assert set(Provider.objects.values_list("name", flat=True)) == {"lmstudio", "lmstudio-2"}


def test_the_key_is_stored_encrypted_and_serves_the_next_time(
    as_alice: Client, studio: tuple[LMStudioStandin, str]
) -> None:
    studio[0].key = "sk-right-key"
    add(as_alice, studio[1], key="sk-right-key")

    found = found_at(as_alice, studio[1])

    assert decrypt(Provider.objects.get().api_key_encrypted) == "sk-right-key"
    assert "Window: 4,096" in found.text


def test_a_model_that_the_server_does_not_know_is_not_added(
    as_alice: Client, studio: tuple[LMStudioStandin, str]
) -> None:
    found = add(as_alice, studio[1], model="nobody")

    assert "This does not work yet" in found.text
    assert not Provider.objects.exists()


def test_what_was_switched_off_is_switched_on_again(as_alice: Client, studio: tuple[LMStudioStandin, str]) -> None:
    add(as_alice, studio[1])
    Provider.objects.update(enabled=False)
    Agent.objects.update(enabled=False)
    LLM.objects.update(enabled=False)

    add(as_alice, studio[1])

    assert Provider.objects.get().enabled
    assert LLM.objects.get().enabled
    assert Agent.objects.get().enabled


def test_without_javascript_the_way_leads_to_a_new_dialog(
    as_alice: Client, studio: tuple[LMStudioStandin, str]
) -> None:
    tested = as_alice.post("/connect/", {"offer": "lmstudio", "address": studio[1]})
    response = as_alice.post("/connect/add/", {"offer": "lmstudio", "address": studio[1], "model": "google/gemma-4"})

    assert "<html" in tested.content.decode()
    assert response["Location"] == "/dialogs/new/"
    said = page(as_alice, "/dialogs/new/").text
    assert "google/gemma-4 is added." in said
    assert "Kept from overflowing: window 4,096 as loaded in LM Studio, 409 kept for the answer" in said


# --- How it is kept from overflowing ---------------------------------------------------------------------------------


def test_a_model_that_is_added_says_how_it_is_kept_from_overflowing(as_alice: Client) -> None:
    with serving(OllamaStandin(allocated=4096).app()) as url:
        found = add(as_alice, url, "tiny:latest", offer="ollama")

    said = " ".join(found.text.split())
    assert "Kept from overflowing: window 4,096 from the server, 409 kept for the answer" in said


def test_an_ollama_is_offered_to_be_connected_as_one(as_alice: Client) -> None:
    with serving(OllamaStandin().app()) as url:
        found = found_at(as_alice, f"{url}/v1", offer="openai-compatible")
        (link,) = [to for to in found.links() if "offer=ollama" in to]
        form = Page(as_alice.get(link).content.decode())

    (address,) = [attrs for _tag, attrs in form.tags if attrs.get("id") == "connect-address"]
    assert address["value"] == url
    assert LLM.objects.count() == 0
