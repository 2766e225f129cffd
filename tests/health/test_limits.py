"""The effective limit: which number rules, what raises and caps it, and that the trace tells."""

from __future__ import annotations

import pytest

from health.compaction.config import ContextConfig
from health.limits import effective_limit, output_reserve

CONFIG = ContextConfig()


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        ({}, 5000),
        ({"agent_limit": 2000}, 3500),  # the floor is always enforced
        ({"agent_limit": 4200}, 4200),
        ({"llm_type": "cloud_grok"}, 8000),  # does not follow the default
        ({"llm_type": "gpt4"}, 5000),  # follows it: its own 6,000 is kept but inactive
        ({"llm_type": "unheard of"}, 5000),
        ({"llm_type": "cloud_grok", "agent_limit": 6000}, 6000),  # the agent beats the LLM
        ({"is_p1": True}, 6000),  # 20 % more
        ({"is_p1": True, "agent_limit": 3000}, 3600),  # raised before the floor is looked at
        ({"is_p1": True, "agent_limit": 2000}, 3500),
        ({"window": 4096, "reserve": 409}, 3687),  # capped by the window
        ({"window": 4096, "reserve": 409, "is_p1": True}, 3687),
        ({"window": 3000, "reserve": 300}, 2700),  # the window caps the floor too
        ({"window": 128_000, "reserve": 12_800}, 5000),
    ],
)
def test_the_limit_is_chosen_raised_and_capped(given: dict, tokens: int) -> None:
    assert effective_limit(CONFIG, **given).tokens == tokens


def test_a_raised_floor_holds_for_every_agent() -> None:
    assert effective_limit(ContextConfig(min_limit=4000), agent_limit=2000).tokens == 4000


def test_the_trace_tells_every_term_in_order() -> None:
    limit = effective_limit(CONFIG, agent_limit=2800, is_p1=True, window=3600, reserve=360)

    assert [(term.what, term.tokens) for term in limit.trace] == [
        ("agent", 2800),
        ("P1 agent", 3360),
        ("floor", 3500),
        ("window", 3240),
    ]
    assert limit.trace[-1].source == "the window of 3,600 less 360 for the answer"


def test_the_trace_names_an_llm_that_follows_the_default() -> None:
    assert effective_limit(CONFIG, llm_type="gpt4").trace[0].source == "default_limit, which gpt4 follows"


@pytest.mark.parametrize(("window", "refused"), [(1536, False), (1535, True), (100, True)])
def test_a_dialog_does_not_start_with_fewer_than_1024_usable_tokens(window: int, refused: bool) -> None:
    limit = effective_limit(CONFIG, window=window, reserve=512)

    assert bool(limit.refused) is refused
    assert limit.tokens >= 0


@pytest.mark.parametrize(
    ("window", "requested", "reserve"),
    [
        (10_000, None, 1000),  # a tenth
        (500, None, 64),  # never less than 64
        (10_000, 700, 700),  # as asked for
        (10_000, 5000, 1000),  # never more than a tenth: a long answer gets what is left
        (10_000, 1, 64),
        (200, None, 40),  # the fifth wins over the 64
    ],
)
def test_the_output_reserve_is_what_was_asked_for_within_bounds(
    window: int, requested: int | None, reserve: int
) -> None:
    assert output_reserve(window, requested=requested) == reserve
