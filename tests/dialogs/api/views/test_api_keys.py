"""The page of a person's API keys: made, shown once, changed, revoked, and nobody else's business."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.api.writes.api_keys import create_key, revoke_key
from dialogs.models import Agent, ApiKey
from tests.dialogs.keys import opened_with
from tests.dialogs.pages.views.pages import HTMX, Page, page

LIST, NEW = "/settings/keys/", "/settings/keys/new/"
GOOD = {"name": "Laptop", "scope": "chat", "which": "all", "expiry": "never", "expires_on": "", "notices": "event"}
CHANGE = {name: value for name, value in GOOD.items() if name != "scope"}


def a_key(owner: User, **fields: Any) -> ApiKey:
    return create_key(owner=owner, **({"name": "Laptop"} | fields))[0]


def of(key: ApiKey, action: str = "") -> str:
    return f"{LIST}{key.pk}/{action}"


def made(client: Client, **fields: Any) -> ApiKey:
    response = client.post(NEW, GOOD | fields)
    assert response.status_code == 200, response.context["form"].errors
    return ApiKey.objects.get()


def secret_in(html: str) -> str:
    found = re.search(r'id="key-secret">(dk-[\w-]{43})<', html)
    assert found, html
    return found[1]


def test_every_page_leads_to_the_keys_and_who_has_none_learns_what_one_is_for(as_alice: Client) -> None:
    assert LIST in page(as_alice, "/").links()

    shown = page(as_alice, LIST)

    assert "Use Dominds from other programs" in shown.text
    assert "http://testserver/v1" in shown.text
    assert NEW in shown.links()


def test_a_new_key_is_shown_this_once_with_a_line_to_try_it(as_alice: Client, alice: User, agent: Agent) -> None:
    response = as_alice.post(NEW, GOOD)

    html = response.content.decode()
    key = opened_with(secret_in(html))
    assert key is not None
    assert (key.owner, key.name) == (alice, "Laptop")
    shown = Page(html).text
    assert "curl http://testserver/v1/chat/completions -H 'Authorization: Bearer dk-" in shown
    assert '"model": "helper"' in shown
    assert "no-store" in response["Cache-Control"]
    assert secret_in(html) not in page(as_alice, LIST).text


def test_htmx_gets_the_secret_in_the_place_of_the_form(as_alice: Client) -> None:
    html = as_alice.post(NEW, GOOD, headers=HTMX).content.decode()

    assert html.startswith('<section id="api-key">')
    assert secret_in(html)


def test_a_key_that_only_reads_is_tried_by_reading(as_alice: Client, agent: Agent) -> None:
    html = as_alice.post(NEW, GOOD | {"scope": "read"}).content.decode()

    assert "curl http://testserver/v1/models -H" in Page(html).text
    assert ApiKey.objects.get().scope == "read"


def test_agents_and_llms_can_be_chosen_each_under_its_heading(as_alice: Client, agent: Agent) -> None:
    shown = page(as_alice, NEW)

    boxes = [attrs["value"] for tag, attrs in shown.tags if tag == "input" and attrs.get("name") == "models"]
    groups = [attrs["aria-label"] for tag, attrs in shown.tags if attrs.get("role") == "group"]
    assert boxes == ["helper", "scripted/tiny"]
    assert groups == ["Agents", "LLMs"]


def test_all_that_is_chosen_is_kept(as_alice: Client, agent: Agent) -> None:
    models = ["helper", "scripted/tiny"]
    key = made(
        as_alice,
        which="some",
        models=models,
        notices="content",
        offers_recall="on",
        requests_per_minute="30",
        expiry="30",
    )

    assert key.allowed_models == models
    assert (key.notices, key.offers_recall, key.requests_per_minute) == ("content", True, 30)
    assert key.expires_at is not None
    assert timedelta(days=29, hours=23) < key.expires_at - timezone.now() <= timedelta(days=30)


def test_the_last_day_is_good_to_its_end(as_alice: Client) -> None:
    key = made(as_alice, expiry="date", expires_on="2199-12-31")

    assert key.expires_at == datetime(2200, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 121}, "at most 120 characters"),
        ({"which": "some"}, "Choose a model, or all of them."),
        ({"which": "all", "models": ["helper"]}, "Choose “Only these”, or no model below."),
        ({"which": "some", "models": ["nobody"]}, "nobody is not one of the available choices"),
        ({"expiry": "date"}, "Choose a day."),
        ({"expiry": "date", "expires_on": "2020-01-01"}, "must be in the future"),
        ({"expiry": "date", "expires_on": "9999-12-31"}, "Choose an earlier day."),
        ({"expiry": "7"}, "7 is not one of the available choices"),
        ({"notices": "loudly"}, "loudly is not one of the available choices"),
        ({"requests_per_minute": "0"}, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_said_and_no_key_is_made(
    as_alice: Client, agent: Agent, wrong: dict[str, Any], complaint: str
) -> None:
    response = as_alice.post(NEW, GOOD | wrong)

    assert response.status_code == 422
    assert complaint in Page(response.content.decode()).text
    assert not ApiKey.objects.exists()


def test_a_wrong_form_keeps_what_was_typed(as_alice: Client) -> None:
    wrong = {"name": "Yesterday's", "expiry": "date", "expires_on": "2020-01-01"}

    found = Page(as_alice.post(NEW, GOOD | wrong).content.decode())

    typed = {attrs.get("name"): attrs.get("value") for tag, attrs in found.tags if tag == "input"}
    assert (typed["name"], typed["expires_on"]) == ("Yesterday's", "2020-01-01")
    assert any(tag == "option" and attrs.get("value") == "date" and "selected" in attrs for tag, attrs in found.tags)


def test_htmx_shows_what_is_wrong(as_alice: Client) -> None:
    response = as_alice.post(NEW, GOOD | {"name": ""}, headers=HTMX)

    assert response.status_code == 200
    assert "This field is required." in response.content.decode()


def test_the_list_says_what_each_key_may_and_when_it_was_used(as_alice: Client, alice: User, agent: Agent) -> None:
    key = a_key(alice, allowed_models=["helper"], scope="read", requests_per_minute=12)

    before = page(as_alice, LIST).text
    ApiKey.objects.update(last_used_at=timezone.now())

    assert f"{key.prefix}…" in before
    assert re.search(r"read only.*Models\s*helper.*per minute\s*12.*Last used\s*never.*Expires\s*never", before, re.S)
    assert not re.search(r"Last used\s*never", page(as_alice, LIST).text)


def test_an_expired_key_and_a_revoked_one_are_marked(as_alice: Client, alice: User) -> None:
    expired, revoked = a_key(alice, name="Old"), a_key(alice, name="Lost")
    ApiKey.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(days=1))
    revoke_key(key=revoked)

    shown = page(as_alice, LIST)

    assert re.search(r"Old.*expired.*1 revoked key\b.*Lost.*revoked", shown.text, re.S)
    assert of(expired) in shown.links()
    assert of(revoked) not in shown.links()


def test_a_key_is_changed_and_keeps_its_secret_and_scope(as_alice: Client, alice: User, agent: Agent) -> None:
    key = a_key(alice, scope="read")
    other = {"which": "some", "models": ["helper"], "offers_recall": "on", "requests_per_minute": "9", "expiry": "30"}

    response = as_alice.post(of(key), CHANGE | other | {"name": "Phone", "notices": "off", "scope": "chat"})

    assert response["Location"] == LIST
    changed = ApiKey.objects.get()
    assert (changed.name, changed.notices, changed.allowed_models) == ("Phone", "off", ["helper"])
    assert (changed.offers_recall, changed.requests_per_minute, changed.expires_at is None) == (True, 9, False)
    assert (changed.scope, changed.sha256, changed.prefix) == ("read", key.sha256, key.prefix)


def test_the_form_shows_what_is_kept_and_saving_it_changes_nothing(as_alice: Client, alice: User, agent: Agent) -> None:
    until = timezone.now() + timedelta(days=30)
    key = a_key(alice, allowed_models=["helper"], expires_at=until, notices="reasoning")

    form = as_alice.get(of(key)).context["form"]
    sent = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    as_alice.post(of(key), sent | {"offers_recall": ""})

    kept = ApiKey.objects.get()
    assert (kept.allowed_models, kept.expires_at, kept.notices) == (["helper"], until, "reasoning")


def test_a_model_that_has_gone_stays_chosen(as_alice: Client, alice: User, agent: Agent) -> None:
    key = a_key(alice, allowed_models=["helper"])
    Agent.objects.update(enabled=False)

    as_alice.post(of(key), CHANGE | {"which": "some", "models": ["helper"]})

    assert "Not here any more" in as_alice.get(of(key)).content.decode()
    assert ApiKey.objects.get().allowed_models == ["helper"]


def test_a_wrong_change_is_refused(as_alice: Client, alice: User) -> None:
    key = a_key(alice)

    response = as_alice.post(of(key), CHANGE | {"name": ""})

    assert response.status_code == 422
    # The heading keeps the name that is stored.
    assert ">Laptop</h1>" in response.content.decode()


def test_a_revoked_key_is_not_changed(as_alice: Client, alice: User) -> None:
    key = a_key(alice)
    revoke_key(key=key)

    response = as_alice.post(of(key), CHANGE | {"name": "Phone"}, follow=True)

    assert "This key was revoked." in Page(response.content.decode()).text
    assert ApiKey.objects.get().name == "Laptop"


def test_revoking_asks_first(as_alice: Client, alice: User) -> None:
    key = a_key(alice)

    alone, modal = as_alice.get(of(key, "revoke/")), as_alice.get(of(key, "revoke/"), headers=HTMX)

    assert "<dialog" not in alone.content.decode()
    assert modal.content.decode().count("<dialog") == 1
    assert "Laptop" in modal.content.decode()
    assert ApiKey.objects.get().is_usable


def test_a_revoked_key_opens_nothing(as_alice: Client, alice: User) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    response = as_alice.post(of(key, "revoke/"), follow=True)

    assert "“Laptop” is revoked." in Page(response.content.decode()).text
    assert opened_with(secret) is None


@pytest.mark.parametrize("action", ["", "revoke/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_alices_key_is_not_bobs(as_bob: Client, alice: User, action: str, method: str) -> None:
    key = a_key(alice)

    response = getattr(as_bob, method)(of(key, action), CHANGE | {"name": "Bob's"})

    assert response.status_code == 404
    assert "Laptop" not in response.content.decode() + page(as_bob, LIST).text
    assert (ApiKey.objects.get().name, ApiKey.objects.get().revoked_at) == ("Laptop", None)


@pytest.mark.parametrize("path", [LIST, NEW])
def test_the_pages_keep_to_the_policy_and_a_name_is_text_and_nothing_else(
    as_alice: Client, alice: User, path: str
) -> None:
    a_key(alice, name="<b>Laptop</b>")

    assert page(as_alice, path).offences == []
    assert "<b>Laptop" not in as_alice.get(path).content.decode()
    assert as_alice.get(f"{LIST}{10**30}/").status_code == 404
