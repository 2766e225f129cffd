"""What is tried: what is in force first, then what was chosen and typed, and nothing that cannot be."""

from __future__ import annotations

import pytest

from dialogs.learning.variants import NO_LIMIT, InvalidVariants, VariantChoice, variants
from dialogs.llms.guard import by_limit
from dialogs.models import LLM, Agent, Dialog, Provider
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import load_own
from tests.dialogs.compacting_builders import guard


@pytest.fixture
def helper(dialog: Dialog) -> Agent:
    """Guarded at 4,000 tokens, in a window of 100,000."""
    guard(dialog, limit=4000)
    return dialog.agent


def limits(asked: VariantChoice, agent: Agent) -> list[int]:
    return [variant.limit for variant in variants(asked, agent)]


def test_what_is_in_force_comes_first_and_once(helper: Agent) -> None:
    now, *others = variants(VariantChoice(limits=("more", "now"), chains=("now", "recent")), helper)

    assert now.limit == 4000
    assert now.chain[:3] == ("trim_payloads", "select_passages", "summarize_old")
    assert now not in others
    assert [(one.limit, one.chain[1]) for one in others] == [
        (5000, "select_passages"),
        (4000, "prioritize_recent"),
        (5000, "prioritize_recent"),
    ]


def test_what_is_in_force_is_what_the_agent_and_its_llm_type_have_of_their_own(helper: Agent) -> None:
    everybodys = variants(VariantChoice(limits=("now",), chains=("now",)), helper)[0]
    helper.own_settings = load_own("how: chain")

    own = variants(VariantChoice(limits=("now",), chains=("now",)), helper)[0]

    assert everybodys.chain[1] == "select_passages"
    assert own.chain == by_limit(Dialog(agent=helper, llm=helper.llm)).chain
    assert own.chain[1] != "select_passages"


def test_limits_can_be_chosen_and_typed(helper: Agent) -> None:
    asked = VariantChoice(limits=("much_more", "window"), other_limits="8000, 3500，", chains=("now",))

    assert limits(asked, helper) == [4000, 3500, 6000, 8000, 90_000]


def test_a_share_more_goes_no_further_than_the_window(helper: Agent) -> None:
    LLM.objects.update(context_length=5000)

    assert limits(VariantChoice(limits=("much_more",), chains=("now",)), Agent.objects.get()) == [4000, 4500]


@pytest.mark.parametrize("typed", ["3499", "90001", "x", "-1", "1e4", "9" * 30, "²"])
def test_a_limit_that_could_never_be_in_force_is_refused(helper: Agent, typed: str) -> None:
    with pytest.raises(InvalidVariants, match="is no limit from 3,500 to 90,000"):
        variants(VariantChoice(other_limits=typed), helper)


def test_an_order_of_ones_own_stands_between_what_the_guard_adds(helper: Agent) -> None:
    made = variants(VariantChoice(limits=("now",), chains=(), other_chain="hybrid, sliding_window"), helper)

    assert made[1].chain == ("trim_payloads", "hybrid", "sliding_window", "select_passages")


def test_a_strategy_that_is_none_is_named(helper: Agent) -> None:
    with pytest.raises(InvalidVariants, match="no strategy “magic”"):
        variants(VariantChoice(other_chain="hybrid, magic"), helper)


@pytest.mark.parametrize(
    "asked",
    [
        VariantChoice(limits=()),
        VariantChoice(chains=()),
        VariantChoice(limits=("nonsense",)),
        VariantChoice(other_limits="4100,4200,4300,4400,4500"),
        VariantChoice(chains=("now", "recent", "chunks", "passages", "window")),
    ],
)
def test_nothing_and_too_much_are_refused(helper: Agent, asked: VariantChoice) -> None:
    with pytest.raises(InvalidVariants):
        variants(asked, helper)


def test_where_nobody_is_guarded_now_is_no_limit_and_more_is_of_the_limit_that_would_hold(agent: Agent) -> None:
    LLM.objects.update(context_length=100_000)

    made = variants(VariantChoice(limits=("now", "more"), chains=("now",)), Agent.objects.get())

    assert [one.limit for one in made] == [NO_LIMIT, 6250]


def test_no_model_is_asked_so_lm_studios_chain_begins_with_what_follows(agent: Agent) -> None:
    Provider.objects.update(kind="lmstudio", base_url="http://127.0.0.1:9/v1")
    LLM.objects.update(detected_context_length=8192, compaction="automatic")

    made = variants(
        VariantChoice(limits=("now",), chains=("now",), other_chain="prune_with_agent"), Agent.objects.get()
    )

    assert made[0].chain == ("passages_keep_last_five", "keep_last_five")
    assert all(set(one.chain) <= set(REGISTRY) - {"prune_with_agent"} for one in made)


def test_lm_studios_limits_go_up_to_its_window_of_which_the_reserve_is_a_part(agent: Agent) -> None:
    Provider.objects.update(kind="lmstudio", base_url="http://127.0.0.1:9/v1")
    LLM.objects.update(detected_context_length=10_000, context_length=None, compaction="automatic")
    helper = Agent.objects.get()

    assert limits(VariantChoice(limits=("now", "more", "window"), chains=("now",)), helper) == [10_000]
    assert limits(VariantChoice(limits=(), other_limits="8000, 10000", chains=("now",)), helper) == [10_000, 8000]


def test_a_limit_below_lm_studios_window_goes_up_to_what_a_prompt_may_fill(dialog: Dialog) -> None:
    guard(dialog, limit=4000)
    Provider.objects.update(kind="lmstudio", base_url="http://127.0.0.1:9/v1")
    LLM.objects.update(detected_context_length=10_000, context_length=None, compaction="automatic")

    assert limits(VariantChoice(limits=("more", "window"), chains=("now",)), Agent.objects.get()) == [4000, 5000, 9000]
