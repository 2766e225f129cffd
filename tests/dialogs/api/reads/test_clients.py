"""Where a history is known, when many conversations begin alike."""

from __future__ import annotations

from pytest_django import DjangoAssertNumQueries

from dialogs.api.reads.clients import longest_known
from dialogs.models import LLM, Agent, ApiKey
from tests.client_dialogs import answered, ask, assistant, request_of, user


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
