"""The plan's YAML: what it means, what is refused and in what words, and that writing it loses nothing."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from health.compaction.config import (
    CompressRatios,
    ContentTypeChunking,
    ContextConfig,
    DiscardLowRel,
    How,
    LlmLimit,
    PlaceholderDetail,
    RecoveryMode,
    RetryPolicy,
    chain_for,
)
from health.compaction.terms.configuration import InvalidConfig, dump, load, load_own, own_as_yaml, with_own

# The plan's document, word for word.
DEFAULTS = """
context_config:
  min_limit: 3500  # Global floor (user-configurable)
  default_limit: 5000  # Default per-agent
  warning_threshold: 0.8  # 80% triggers breaking

  # Per-LLM Type Configuration
  per_llm:
    - type: "local_14b"  # e.g., Qwen3-14B, Phi-4
      limit: 3500
      follow_default: true  # Checkbox toggle in UI
    - type: "cloud_grok"
      limit: 8000
      follow_default: false
    - type: "gpt4"
      limit: 6000
      follow_default: true

  # Breaking Strategy Chain
  breaking_strategy:
    chain_order:
      - "summarize_old"
      - "prioritize_recent"
      - "content_type_chunking"
      - "discard_low_rel"
      - "hybrid"

    summarize_old:
      old_threshold: 0.6  # First 60% considered "old"
      summary_length: 300  # Target token count

    prioritize_recent:
      rel_threshold: 0.5  # Min relevance score to keep
      recent_bias: 0.2  # Auto-keep last 20%
      priority_boost: 1.5  # Multiplier for P1 units

    content_type_chunking:
      compress_ratios:
        code: 0.7
        text: 0.5
        plan_ref: 1.0  # Keep verbatim
        log: 0.4

    discard_low_rel:
      discard_percent: 0.3  # Discard bottom 30%
      placeholder_detail: "brief"  # brief | linked

    hybrid:
      max_iterations: 3

  recovery_mode: "fresh_start"  # fresh_start | truncate | error

  # Retry Policies (integrated)
  retry_policies:
    default:
      max_attempts: 3
      backoff_base_seconds: 5
      max_delay_seconds: 60
    per_tool:
      askQuestion:
        max_attempts: 4
        backoff_base_seconds: 10
"""


def with_key(path: str, value: str) -> str:
    """A document of this one key: `a.b: 1` below the root."""
    keys = ["context_config", *path.split(".")]
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return "\n".join([*lines[:-1], f"{lines[-1]} {value}"])


def test_the_seeds_document_is_the_default_configuration() -> None:
    assert load(DEFAULTS) == ContextConfig()


@pytest.mark.parametrize("text", ["", "context_config: {}", "{}"])
def test_what_is_not_said_has_its_default(text: str) -> None:
    assert load(text) == ContextConfig()


def test_every_kind_of_key_can_be_set() -> None:
    text = """
context_config:
  min_limit: 4000
  recovery_mode: truncate
  per_llm: [{type: tiny, limit: 3600, follow_default: false}]
  breaking_strategy:
    chain_order: [truncate]
    discard_low_rel: {placeholder_detail: linked}
    content_type_chunking: {compress_ratios: {code: 0.9}}
  retry_policies: {default: {max_attempts: 5}, per_tool: {}}
"""

    config = load(text)

    assert (config.min_limit, config.recovery_mode) == (4000, RecoveryMode.TRUNCATE)
    assert config.per_llm == (LlmLimit(type="tiny", limit=3600, follow_default=False),)
    assert config.chain_order == ("truncate",)
    assert config.discard_low_rel == DiscardLowRel(placeholder_detail=PlaceholderDetail.LINKED)
    assert config.content_type_chunking == ContentTypeChunking(compress_ratios=CompressRatios(code=0.9))
    assert (config.retry_default, config.retry_per_tool) == (RetryPolicy(max_attempts=5), ())


def test_a_tools_retries_inherit_what_they_do_not_say() -> None:
    text = "context_config: {retry_policies: {default: {max_delay_seconds: 9}, per_tool: {ask: {max_attempts: 2}}}}"

    assert load(text).retry_per_tool == (("ask", RetryPolicy(max_attempts=2, max_delay_seconds=9)),)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("warning_threshold", ".nan", "a number from 0 to 1, not nan"),
        ("warning_threshold", "80", "a number from 0 to 1, not 80"),  # percent instead of a share
        ("warning_threshold", "1.0", "above 0 and at most 0.9, as an answer under way is cut"),  # would never warn
        ("warning_threshold", "0.95", "above 0 and at most 0.9"),
        ("warning_threshold", "0.7", "below the warning_threshold"),  # not above the goal: would run each turn
        ("goal", "0.8", "below the warning_threshold"),
        ("accept", "0.6", "at least the goal"),
        ("min_limit", "3499", "at least 3,500"),  # the floor is never lowered
        ("min_limit", "3500.5", "a whole number"),
        ("default_limit", "true", "a whole number"),
        ("default_limit", "0", "at least 1"),
        ("recovery_mode", "restart", "fresh_start or truncate or error, not 'restart'"),
        ("recovery_mode", "[]", "fresh_start or truncate or error"),
        ("per_llm", "{}", "a list"),
        ("per_llm", "[{type: x, limit: 1}]", "lacks the key 'follow_default'"),
        ("per_llm", "[{type: x, limit: 1, follow_default: maybe}]", "per_llm[0].follow_default must be true or false"),
        ("per_llm", "[{type: ' ', limit: 1, follow_default: true}]", "per_llm[0].type must be a name"),
        ("per_llm", '[{type: "a\\x85b", limit: 1, follow_default: true}]', "printable characters"),
        ("breaking_strategy", "chain", "a section with keys"),
        ("breaking_strategy.chain_order", "[1]", "breaking_strategy.chain_order[0] must be a name"),
        ("breaking_strategy.prioritize_recent.priority_boost", ".inf", "at most 1,000,000,000,000,000, not inf"),
        ("default_limit", "1000000000000001", "at most 1,000,000,000,000,000"),
        ("breaking_strategy.prioritize_recent.priority_boost", "0.5", "at least 1"),
        ("breaking_strategy.summarize_old.old_treshold", "0.6", "no key 'old_treshold'; it knows old_threshold"),
        ("breaking_strategy.content_type_chunking.compress_ratios.code", "-0.1", "from 0 to 1"),
        ("breaking_strategy.discard_low_rel.placeholder_detail", "long", "brief or linked"),
        ("breaking_strategy.hybrid.max_iterations", "0", "at least 1"),
        ("retry_policies.default.backoff_base_seconds", "-1", "at least 0"),
        ("retry_policies.per_tool", "[]", "a section with a key for each tool"),
        ("retry_policies.per_tool.ask.max_attempts", "'3'", "per_tool.ask.max_attempts must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_key(path: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        load(with_key(path, value))

    assert complaint in str(refused.value)
    assert str(refused.value).startswith("context_config.")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", "not YAML"),
        ("[" * 600, "not YAML"),  # deeper than Python goes
        ("just words", "the document must be a section"),
        ("contextconfig: {}", "has no key 'contextconfig'"),
        ("context_config: 2024-13-45", "not YAML"),  # a date that there is not
        ("context_config: {2024-12-24: 1}", "has no key '2024-12-24'"),
        ("x: !!python/object:os.system {}", "not YAML"),
        ("? [a]\n: 1", "not YAML"),
        ("context_config: {goal: !!bool x}", "not YAML"),
        ("context_config: {goal: !!timestamp x}", "not YAML"),
        ("!!map [a]", "not YAML"),
        ("context_config: {goal: !!int ''}", "not YAML"),
        (f"context_config: {{goal: 1{':1' * 200}.5}}", "not YAML"),  # in sixties, more than a float holds
    ],
)
def test_what_is_no_configuration_is_refused_in_words(text: str, complaint: str) -> None:
    with pytest.raises(InvalidConfig, match=complaint):
        load(text)


def test_a_long_wrong_value_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidConfig) as refused:
        load(with_key("recovery_mode", "x" * 10_000))

    assert len(str(refused.value)) < 250


shares = st.floats(0, 1, allow_nan=False)
names = st.text(min_size=1).filter(str.strip).filter(str.isprintable)
configs = st.builds(
    ContextConfig,
    min_limit=st.integers(3500, 10**9),
    default_limit=st.integers(1, 10**9),
    warning_threshold=st.floats(0.75, 0.9),
    goal=st.floats(0.1, 0.7),
    accept=st.floats(0.7, 1),
    min_gain=shares,
    chain_order=st.lists(st.text("abc_", min_size=1)).map(tuple),
    per_llm=st.lists(
        st.builds(
            LlmLimit,
            type=names,
            limit=st.integers(1, 10**6),
            follow_default=st.booleans(),
        )
    ).map(tuple),
    recovery_mode=st.sampled_from(RecoveryMode),
    discard_low_rel=st.builds(
        DiscardLowRel, discard_percent=shares, placeholder_detail=st.sampled_from(PlaceholderDetail)
    ),
    retry_per_tool=st.dictionaries(names, st.builds(RetryPolicy, max_attempts=st.integers(1, 9))).map(
        lambda tools: tuple(tools.items())
    ),
)


@settings(max_examples=25, deadline=None)
@given(configs)
def test_what_is_written_reads_the_same(config: ContextConfig) -> None:
    assert load(dump(config)) == config


# Which strategies run.


def test_passages_are_chosen_before_the_configured_chain() -> None:
    config = ContextConfig(chain_order=("summarize_old", "hybrid"))

    assert config.how is How.PASSAGES
    assert chain_for(config) == ("trim_payloads", "select_passages", "summarize_old", "hybrid")


def test_the_configured_chain_may_run_first() -> None:
    config = ContextConfig(how=How.CHAIN, chain_order=("summarize_old", "hybrid"))

    assert chain_for(config) == ("trim_payloads", "summarize_old", "hybrid", "select_passages")


@pytest.mark.parametrize("how", How)
def test_no_strategy_runs_twice(how: How) -> None:
    config = ContextConfig(how=how, chain_order=("select_passages", "trim_payloads"))

    assert sorted(chain_for(config)) == ["select_passages", "trim_payloads"]


def test_how_is_a_key_of_the_document() -> None:
    assert load("context_config: {how: chain}").how is How.CHAIN
    assert load(dump(ContextConfig(how=How.CHAIN))).how is How.CHAIN
    with pytest.raises(InvalidConfig, match="how must be passages or chain"):
        load("context_config: {how: magic}")


# What an earlier version accepted.


def test_a_stored_threshold_above_nine_tenths_is_read_as_nine_tenths() -> None:
    config = load("context_config: {warning_threshold: 0.95, default_limit: 6000}", was_stored=True)

    assert (config.warning_threshold, config.default_limit) == (0.9, 6000)


def test_a_log_of_rewards_may_be_kept_for_ten_years() -> None:
    with pytest.raises(InvalidConfig, match="at most 3,650"):
        load("context_config: {reward_log_days: 1000000}")
    assert load("context_config: {reward_log_days: 1000000}", was_stored=True).reward_log_days == 3650


def test_a_stored_goal_above_nine_tenths_comes_below_the_threshold() -> None:
    config = load("context_config: {warning_threshold: 0.97, goal: 0.95, accept: 0.96}", was_stored=True)

    assert (config.warning_threshold, round(config.goal, 6), config.accept) == (0.9, 0.8, 0.96)


# --- Settings of an LLM type's or an agent's own ---------------------------------------------------------------------

OWN = """
how: chain
breaking_strategy:
  chain_order: [discard_low_rel]
  discard_low_rel: {discard_percent: 0.5}
"""


def test_own_settings_take_the_place_of_what_they_name() -> None:
    config = with_own(ContextConfig(), load_own(OWN))

    assert config == replace(
        ContextConfig(),
        how=How.CHAIN,
        chain_order=("discard_low_rel",),
        discard_low_rel=replace(DiscardLowRel(), discard_percent=0.5),
    )


def test_the_last_layer_holds_where_two_name_the_same() -> None:
    config = with_own(ContextConfig(), load_own(OWN), load_own("how: passages"), "")

    assert (config.how, config.chain_order) == (How.PASSAGES, ("discard_low_rel",))


def test_they_may_be_copied_with_the_root_of_the_whole_document() -> None:
    assert load_own(f"context_config:{OWN.replace(chr(10), chr(10) + '  ')}") == load_own(OWN)
    assert load_own(own_as_yaml(load_own(OWN))) == load_own(OWN)


@pytest.mark.parametrize("empty", ["", "{}", "# nothing yet", "context_config:"])
def test_nothing_is_everybodys(empty: str) -> None:
    assert load_own(empty) == ""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("min_limit: 5000", "min_limit"),
        ("how: best", "how"),
        (
            "breaking_strategy: {discard_low_rel: {discard_percent: 5}}",
            "breaking_strategy.discard_low_rel.discard_percent",
        ),
        ("- how", ""),
        ("how: [", ""),
    ],
)
def test_what_nobody_may_have_for_themselves_is_refused_by_its_key(text: str, path: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        load_own(text)

    assert refused.value.path.removeprefix("the document") == path


def test_an_llm_types_own_settings_are_written_and_read_again() -> None:
    own = load_own(OWN)
    config = replace(ContextConfig(), per_llm=(LlmLimit(type="gpt4", limit=6000, follow_default=True, own=own),))

    assert load(dump(config)) == config
    assert "own:\n      breaking_strategy:" in dump(config)


def test_what_is_wrong_in_a_types_own_settings_is_named_by_its_key() -> None:
    text = "context_config: {per_llm: [{type: a, limit: 5, follow_default: true, own: {how: best}}]}"

    with pytest.raises(InvalidConfig, match=r"per_llm\[0\]\.own\.how must be passages or chain"):
        load(text)


def test_a_key_that_is_written_twice_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidConfig, match=r"'min_limit' is written twice \(line 4\)"):
        load("context_config:\n  min_limit: 4000\n  goal: 0.6\n  min_limit: 5000\n")


def test_areas_of_first_priority_are_a_list_of_names() -> None:
    assert load("context_config: {priority_areas: [To Do List]}").priority_areas == ("To Do List",)
    with pytest.raises(InvalidConfig, match="priority_areas must be a list"):
        load("context_config: {priority_areas: To Do List}")


def test_a_type_may_have_a_threshold_of_its_own_which_makes_sense_over_everybodys() -> None:
    document = "context_config: {per_llm: [{type: t, limit: 4000, follow_default: false, own: %s}]}"

    config = load(document % "{warning_threshold: 0.6, goal: 0.5, accept: 0.6}")

    assert with_own(config, config.per_llm[0].own).warning_threshold == 0.6
    with pytest.raises(InvalidConfig, match=r"goal must be below the warning_threshold of 0\.6"):
        load(document % "{warning_threshold: 0.6}")


def test_aliases_that_stand_for_a_million_values_are_refused_in_few_words() -> None:
    """An alias of aliases: each level stands for nine of the one before."""
    levels = ["&a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]", *(f"&a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 6))]

    tracemalloc.start()
    with pytest.raises(InvalidConfig, match="how must be passages or chain, not") as refused:
        load_own(f"how: [{', '.join(levels)}]")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(str(refused.value)) < 200
    assert peak < 1_000_000
