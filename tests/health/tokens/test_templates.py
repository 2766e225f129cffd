"""Estimates beside what each family's chat template comes to: the table of docs/token-counting.md."""

from __future__ import annotations

from functools import partial
from statistics import fmean

import pytest

from benchmarks import prose
from benchmarks.counting import SERVERS, Server, accuracy, conversations, reported

TOLD = prose.conversation(prose.ENGLISH)


@pytest.mark.parametrize("server", SERVERS, ids=[server.model for server in SERVERS])
def test_an_estimate_is_within_five_percent_of_the_templates_count(server: Server) -> None:
    found = accuracy(server.model, TOLD, (), partial(reported, server, ()))

    assert max(map(abs, found.estimated)) < 5
    assert max(map(abs, found.calibrated)) < 2


@pytest.mark.parametrize(
    "server", [server for server in SERVERS if server.knows_tools], ids=lambda server: server.model
)
def test_a_service_agents_requests_are_too_with_calls_and_tools(server: Server) -> None:
    messages, tools = conversations()["service"]

    found = accuracy(server.model, messages, tools, partial(reported, server, tools))

    assert fmean(map(abs, found.estimated)) < 5
    assert fmean(map(abs, found.calibrated)) < 2
