"""Whose keys these are, and which of them still open something."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from dialogs.api.reads.api_keys import key_with, keys_of, listed_llms, offered_agents, offered_llms, offered_models
from dialogs.api.reads.clients import longest_known
from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Agent, ApiKey, Provider
from tests.client_dialogs import answered, ask, assistant, request_of, user
from tests.dialogs.keys import opened_with


def test_each_person_has_their_own_newest_first(alice: User, bob: User) -> None:
    first, second = create_key(owner=alice, name="1")[0], create_key(owner=alice, name="2")[0]
    create_key(owner=bob, name="Bob's")

    assert list(keys_of(alice)) == [second, first]


def test_a_key_and_its_owner_come_with_one_indexed_query(alice: User) -> None:
    key, secret = create_key(owner=alice, name="Laptop")

    with CaptureQueriesContext(connection) as asked:
        found = key_with(secret)
        owner = found and found.owner

    assert (found, owner) == (key, alice)
    assert len(asked) == 1
    assert next(field for field in ApiKey._meta.fields if field.name == "sha256").unique


@pytest.mark.parametrize(
    "other",
    [
        lambda key, secret: secret[:-1],
        lambda key, secret: secret + "x",
        lambda key, secret: secret.lower(),
        lambda key, secret: "",
        lambda key, secret: key.sha256,
        lambda key, secret: key.prefix,
    ],
    ids=["shorter", "longer", "lower-case", "nothing", "the-stored-hash", "the-stored-prefix"],
)
def test_a_secret_opens_a_key_only_as_it_is_and_what_is_stored_opens_nothing(
    alice: User, other: Callable[[ApiKey, str], str]
) -> None:
    assert opened_with(other(*create_key(owner=alice, name="Laptop"))) is None


# Where a history is known, when many conversations begin alike.


def test_of_many_conversations_that_begin_alike_none_costs_a_query_of_its_own(
    key: tuple[ApiKey, str], agent: Agent, llm: LLM, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """As a client leaves them that asks the same thing every minute."""
    many = [ask(key[0], llm, user("Ping"), agent=agent) for _each in range(12)]
    for dialog in many:
        answered(dialog, "Pong.")
    request = request_of(key[0], llm, user("Ping"), assistant("Pong."), user("Once more"), agent=agent)

    with django_assert_max_num_queries(4):
        known = longest_known(owner=key[0].owner, request=request)
        named = [(message.dialog_id, message.dialog.client.model, message.course.number) for message in known.messages]

    assert named == [(dialog.pk, agent.slug, 1) for dialog in reversed(many)]


# What clients can ask for as a model: agents and LLMs that are switched on, each once, under one id.


def test_agents_come_before_llms(agent: Agent) -> None:
    assert offered_models() == ["helper", "scripted/tiny"]


def test_what_is_switched_off_is_not_offered(agent: Agent) -> None:
    Agent.objects.update(enabled=False)
    assert offered_models() == ["scripted/tiny"]

    LLM.objects.update(enabled=False)
    assert offered_models() == []


def test_the_agent_that_stands_for_an_llm_is_not_an_agent_to_clients(agent: Agent, llm: LLM) -> None:
    Agent.objects.create(name="tiny", slug="direct-tiny", llm=llm, is_direct=True)

    assert [one.slug for one in offered_agents()] == ["helper"]
    assert [one.slug for one in offered_llms()] == ["scripted/tiny"]


def test_a_service_of_the_catalogue_needs_its_key_though_its_variable_was_taken_away(llm: LLM) -> None:
    here = Provider.objects.get()
    Provider.objects.update(catalogue_values={"api_key_env": "A_KEY_OF_OURS", "base_url": here.base_url})
    assert listed_llms() == []

    Provider.objects.update(base_url="http://127.0.0.1:9/our-own-proxy")
    assert [one.slug for one in listed_llms()] == ["scripted/tiny"]
