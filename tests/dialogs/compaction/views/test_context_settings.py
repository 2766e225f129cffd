"""The settings page: who sees it, what is saved, what is refused and where that is told, and that nothing is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dialogs.models import LLM, Agent, Dialog
from dialogs.turns.writes.messages import post_message
from health import reward_log
from health.compaction.config import ContextConfig, RecoveryMode
from health.configured import config_for, context_config, context_settings
from health.models import ContextSettings, SettingsChange
from tests.builders import an_answer
from tests.dialogs.pages.views.forms import Fields, field, sent
from tests.dialogs.pages.views.pages import HTMX, Page, page
from tests.health.compaction.terms.test_configuration import DEFAULTS
from tests.health.test_reward_log import a_row

URL = "/settings/context/"
CHAIN = "breaking_strategy.chain_order"
UNCHANGED = "summarize_old prioritize_recent content_type_chunking discard_low_rel hybrid"
TYPES = ["local_14b", "cloud_grok", "gpt4"]


@pytest.fixture
def alice(alice: User) -> User:
    """Here Alice is staff; Bob is not."""
    alice.is_staff = True
    alice.save()
    return alice


# By the agents that there are: the page of a new installation is long, and the same in each test.
UNCHANGED_FORMS: dict[tuple[str, ...], Fields] = {}


@pytest.fixture
def fields(as_alice: Client) -> Fields:
    """What Alice's browser would send if she changed nothing."""
    agents = tuple(Agent.objects.values_list("slug", flat=True))
    if agents not in UNCHANGED_FORMS:
        UNCHANGED_FORMS[agents] = sent(page(as_alice, URL), "context-form")
    return dict(UNCHANGED_FORMS[agents])


def post(client: Client, fields: Fields, *, status: int = 200, **changes: Any) -> Page:
    data = fields | {name: value if isinstance(value, list) else [value] for name, value in changes.items()}
    response = client.post(URL, {name: value for name, value in data.items() if value != [None]}, follow=True)
    assert response.status_code == status, response.status_code
    return Page(response.content.decode())


def upload(client: Client, text: str) -> Page:
    response = client.post(f"{URL}import/", {"file": SimpleUploadedFile("settings.yaml", text.encode())})
    return Page(response.content.decode())


def words(found: Page) -> str:
    return " ".join(found.text.split())


def focus_of(found: Page) -> list[str | None]:
    return [attrs["id"] for _tag, attrs in found.tags if "autofocus" in attrs]


# --- Who may -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("get", "export.yaml"), ("post", ""), ("post", "import/"), ("post", "rewards.jsonl")],
)
def test_bob_is_refused_and_sees_no_link(as_bob: Client, method: str, path: str) -> None:
    assert getattr(as_bob, method)(URL + path, {"version": "1", "min_limit": "4000"}).status_code == 403
    assert URL not in page(as_bob, "/").links()
    assert not ContextSettings.objects.exists()


def test_the_log_of_rewards_is_taken_out_and_leaves_a_trace(
    as_alice: Client, alice: User, settings: Any, tmp_path: Path
) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path
    reward_log.append(a_row())
    assert f"{URL}rewards.jsonl" in [attrs.get("action") for tag, attrs in page(as_alice, URL).tags if tag == "form"]

    answer = as_alice.post(f"{URL}rewards.jsonl")

    assert [json.loads(line) for line in answer.content.decode().splitlines()] == [a_row()]
    assert answer.headers["Content-Disposition"] == 'attachment; filename="rewards.jsonl"'
    assert SettingsChange.objects.values_list("key", "after", "changed_by").get() == (
        "reward_log.export",
        "1",
        alice.pk,
    )
    assert as_alice.get(f"{URL}rewards.jsonl").status_code == 405


# --- What stands there ---------------------------------------------------------------------------------------------


def test_a_fresh_install_shows_the_seeds_numbers(as_alice: Client, agent: Agent) -> None:
    """Every LLM with its ceilings, and what each way of compacting does."""
    assert URL in page(as_alice, "/").links()

    found = page(as_alice, URL)

    numbers = [field(found, name)["value"] for name in ("min_limit", "default_limit", "warning_threshold")]
    assert numbers == ["3500", "5000", "0.8"]
    assert field(found, "breaking_strategy.summarize_old.old_threshold")["placeholder"] == "0.6"
    assert field(found, "payloads.max_text_chars")["placeholder"] == "1,000"
    said = words(found)
    for told in (
        "Same as current agent Helper",
        "scripted/tiny—1,000500900",
        "Passages first",
        "Passages keep the sentences, records and lines that will be needed, word for word",
        "The chain first",
        "The chain runs the strategies below in their order.",
        "Without a model, LM Studio's dialogs are compacted as all others are",
    ):
        assert told in said
    assert found.offences == []


def test_what_follows_the_default_stands_in_a_field_that_is_off_and_what_is_the_guards_in_none(
    as_alice: Client,
) -> None:
    found = page(as_alice, URL)

    follows, own = field(found, "per_llm[0].limit"), field(found, "per_llm[1].limit")
    assert ("disabled" in follows, follows["placeholder"], follows["value"]) == (True, "5,000", "")
    assert ("disabled" in own, own["value"]) == (False, "8000")
    assert "Three numbers are no settings" in words(found)
    assert not {"80", "90", "100", "0.9"} & {attrs.get("value") for tag, attrs in found.tags if tag == "input"}


# --- Saving --------------------------------------------------------------------------------------------------------


def test_what_is_left_alone_is_not_changed(as_alice: Client, fields: Fields) -> None:
    found = post(as_alice, fields, do="save")

    assert "Nothing has changed." in found.text
    assert context_config() == ContextConfig()
    assert not SettingsChange.objects.exists()


def test_changed_settings_are_in_force_and_told_in_the_trail(as_alice: Client, alice: User, fields: Fields) -> None:
    found = post(as_alice, fields, do="save", default_limit="6,000", recovery_mode="truncate")

    assert (context_config().default_limit, context_config().recovery_mode) == (6000, RecoveryMode.TRUNCATE)
    trail = set(SettingsChange.objects.values_list("changed_by", "key", "before", "after"))
    assert trail == {
        (alice.pk, "default_limit", "5000", "6000"),
        (alice.pk, "recovery_mode", "fresh_start", "truncate"),
    }
    assert "2 settings are changed." in found.text
    assert "alice" in words(found)


def test_the_pruning_agent_is_stored_once_for_all(as_alice: Client, agent: Agent, fields: Fields) -> None:
    found = post(as_alice, fields, do="save", pruning_agent="helper")

    assert context_settings().pruning_agent == agent
    assert "Same as current agenthelper" in words(found)


@pytest.mark.parametrize(
    ("changes", "trail"),
    [
        ({"per_llm[1].limit": "9000"}, {("per_llm.cloud_grok.limit", "8000", "9000")}),
        # Unticked without a script: the limit that was kept comes into force.
        ({"per_llm[0].follow_default": None}, {("per_llm.local_14b.follow_default", "true", "false")}),
        (
            {"per_llm[3].type": "tiny", "per_llm[3].limit": "4000"},
            {("per_llm.tiny.limit", "", "4000"), ("per_llm.tiny.follow_default", "", "false")},
        ),
        ({"per_llm[3].type": "", "per_llm[3].limit": ""}, set()),
        ({CHAIN: ["hybrid", "truncate"]}, {("breaking_strategy.chain_order",) }),
        (
            {"retry_policies.per_tool[0].max_attempts": "7"},
            {("retry_policies.per_tool.askQuestion.max_attempts", "4", "7")},
        ),
        ({"breaking_strategy.hybrid.max_iterations": "2"}, {("breaking_strategy.hybrid.max_iterations", "3", "2")}),
    ],
)  # fmt: skip
def test_each_change_is_one_line(
    as_alice: Client, fields: Fields, changes: dict[str, Any], trail: set[tuple[str, ...]]
) -> None:
    post(as_alice, fields, do="save", **changes)

    found = set(SettingsChange.objects.values_list("key", "before", "after"))
    assert {row[: len(next(iter(trail), ()))] for row in found} == trail


def test_a_strategys_number_that_is_emptied_is_the_seeds_again(as_alice: Client, fields: Fields) -> None:
    name = "breaking_strategy.hybrid.max_iterations"
    post(as_alice, fields, do="save", **{name: "2"})

    again = sent(page(as_alice, URL), "context-form")
    post(as_alice, again, do="save", **{name: ""})

    assert again[name] == ["2"]
    assert context_config() == ContextConfig()


# --- Refusing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("min_limit", "3499", "at least 3,500"),
        ("min_limit", "many", "at least 3,500"),
        ("default_limit", "0", "at least 1"),
        ("warning_threshold", "80", "from 0 to 1"),
        ("warning_threshold", "0.95", "at most 0.9"),
        ("goal", "0.9", "below the warning threshold of 0.8"),
        ("accept", "0.1", "at least the goal of 0.7"),
        ("min_gain", "nan", "from 0 to 1"),
        ("handover_tokens", "1.5", "at least 1"),
        ("recovery_mode", "pray", "one of"),
        ("breaking_strategy.prioritize_recent.priority_boost", "0.5", "at least 1"),
        ("breaking_strategy.content_type_chunking.compress_ratios.code", "-1", "from 0 to 1"),
        ("breaking_strategy.summarize_old.summary_length", "½", "at least 1"),
        ("payloads.array_head", "99999999999999999999", "at most 1,000,000,000,000,000"),
        ("payloads.array_head", "9" * 5_000, "at most 1,000,000,000,000,000"),
        ("default_limit", "1,000,000,000,000,001", "at most 1,000,000,000,000,000"),
        ("retry_policies.default.max_delay_seconds", "1e999", "at most 1,000,000,000,000,000"),
        ("per_llm[1].type", " ", "a name"),
        ("per_llm[2].type", "cloud_grok", "stands here twice"),
        ("per_llm[1].limit", "", "at least 1"),
        ("retry_policies.default.max_attempts", "0", "at least 1"),
        ("retry_policies.per_tool[0].tool", "", "a name"),
        ("retry_policies.per_tool[0].max_delay_seconds", "soon", "at least 0"),
        ("retry_policies.per_tool[1].tool", "askQuestion", "askQuestion stands here twice."),
        ("retry_policies.per_tool[0].tool", "ask\x07", "a name"),
        (CHAIN, "magic", f"{CHAIN} There is no such strategy: magic."),
        (CHAIN, ["hybrid", "truncate", "hybrid"], f"{CHAIN} hybrid stands here twice."),
        (CHAIN, ["hybrid"], f"{CHAIN} It repeats what stands before it: put another strategy there."),
        ("per_llm[1].own", "how: best", "how: Must be one of: passages or chain."),
        ("per_llm[1].own", "goal: 0.9", "Must be below the warning threshold of 0.8."),
        ("per_llm[1].own", "breaking_strategy: {chain_order: [nothing]}", "There is no such strategy: nothing."),
        ("per_llm[1].own", "breaking_strategy: {chain_order: [hybrid]}", "It repeats what stands before it"),
        ("per_llm[1].own", "min_limit: 5000", "has no key 'min_limit'"),
        ("per_llm[1].own", "how: [", "This is not YAML"),
        ("per_llm[1].own", "5", "must be a section with keys"),
        ("per_llm[1].own", "#" * 10_001, "at most 10000 characters"),
        ("agents.helper.when_full", "sometimes", "sometimes is not one of"),
        # An agent that was deleted, or switched off, while somebody had the page before them.
        ("pruning_agent", "pruner", "not one of the available choices"),
    ],
)
def test_a_field_that_makes_no_sense_is_told_beside_it_and_nothing_is_saved(
    as_alice: Client, agent: Agent, fields: Fields, name: str, text: str | list[str], complaint: str
) -> None:
    found = post(as_alice, fields | {"default_limit": ["6000"]}, status=422, do="save", **{name: text})

    assert complaint in words(found)
    assert name in found.text
    assert not SettingsChange.objects.exists()


@pytest.mark.parametrize(
    "typed",
    [
        {"min_limit": ["many"], "default_limit": ["6000"]},
        {"per_llm[1].type": ["tiny"], "per_llm[1].limit": ["x"], "goal": ["½"]},
        {CHAIN: ["magic", "truncate"]},
        {"pruning_agent": ["helper"], "recovery_mode": ["truncate"], "min_gain": ["2"]},
    ],
)
def test_what_was_typed_stands_there_after_a_refusal(
    as_alice: Client, agent: Agent, fields: Fields, typed: Fields
) -> None:
    again = sent(post(as_alice, fields | typed, status=422, do="save"), "context-form")

    assert {name: again[name] for name in typed} == typed


def test_every_wrong_field_is_told_at_once(as_alice: Client, fields: Fields) -> None:
    """Those too that are wrong only beside others: a goal above the threshold, a type or a tool that is there twice."""
    wrong = {"min_limit": "1", "per_llm[1].type": "", "per_llm[1].limit": "x", "payloads.map_keys": "0", "goal": "0.85"}
    wrong |= {"retry_policies.per_tool[0].tool": "", "retry_policies.per_tool[0].max_attempts": "0"}
    wrong |= {"per_llm[2].type": "local_14b", "per_llm[2].limit": "y"}

    found = post(as_alice, fields, status=422, do="save", **wrong)

    assert "9 fields must be corrected" in found.text
    assert all(name in found.text for name in wrong)


def test_two_editors_notice_each_other(as_alice: Client, fields: Fields, sam: User) -> None:
    other = Client()
    other.force_login(sam)
    post(other, fields, do="save", default_limit="7000")

    told = post(as_alice, fields, status=409, do="save", default_limit="6000")
    before = context_config().default_limit
    post(as_alice, sent(told, "context-form"), do="save")

    assert before == 7000
    assert "sam set default_limit to “7000”." in words(told)
    assert "default_limit70006000" in words(told)
    assert context_config().default_limit == 6000


# --- Buttons, with and without a script ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("button", "chain", "focused"),
    [
        ("up:1", "prioritize_recent summarize_old content_type_chunking discard_low_rel hybrid", "prioritize_recent"),
        ("down:3", "summarize_old prioritize_recent content_type_chunking hybrid discard_low_rel", "discard_low_rel"),
        ("up:0", UNCHANGED, "summarize_old"),
        ("down:4", UNCHANGED, "hybrid"),
        ("up:9", UNCHANGED, ""),
        ("drop:0", "prioritize_recent content_type_chunking discard_low_rel hybrid", "addable"),
        ("drop:9", UNCHANGED, "addable"),
        ("chain-add", f"{UNCHANGED} truncate", "addable"),
        ("refresh", UNCHANGED, ""),
        ("nonsense:9", UNCHANGED, ""),
    ],
)
def test_a_button_changes_the_page_and_nothing_else_and_the_keyboard_stays_with_what_moved(
    as_alice: Client, fields: Fields, button: str, chain: str, focused: str
) -> None:
    found = post(as_alice, fields, do=button, chain_add="truncate", min_limit="nonsense")

    again = sent(found, "context-form")
    assert again[CHAIN] == chain.split()
    assert again["min_limit"] == ["nonsense"]
    assert not ContextSettings.objects.exists()
    element = f"chain-{focused}" if focused == "addable" else f"chain-{button.partition(':')[0]}-{focused}"
    assert focus_of(found) == ([element] if focused else [])


@pytest.mark.parametrize(
    ("button", "llms", "tools", "focused"),
    [
        ("llm-add", ["local_14b", "cloud_grok", "gpt4", ""], ["askQuestion"], "setting-per-llm-3--type"),
        ("llm-remove:1", ["local_14b", "gpt4"], ["askQuestion"], "llm-add"),
        ("tool-add", TYPES, ["askQuestion", ""], "setting-retry-policies-per-tool-1--tool"),
        ("tool-remove:0", TYPES, [], "tool-add"),
        ("tool-remove:7", TYPES, ["askQuestion"], "tool-add"),
    ],
)
def test_rows_come_and_go_and_the_keyboard_goes_to_the_new_one(
    as_alice: Client, fields: Fields, button: str, llms: list[str], tools: list[str], focused: str
) -> None:
    found = post(as_alice, fields, do=button)

    again = sent(found, "context-form")
    assert [value for name, (value, *_) in again.items() if name.endswith("].type")] == llms
    assert [value for name, (value, *_) in again.items() if name.endswith("].tool")] == tools
    assert focus_of(found) == [focused]


@pytest.mark.parametrize(
    ("wrong", "focused"), [({"goal": "9"}, "setting-goal"), ({CHAIN: ["hybrid"]}, "chain-addable")]
)
def test_the_first_wrong_field_is_where_one_goes_on_and_is_told_why(
    as_alice: Client, fields: Fields, wrong: dict[str, Any], focused: str
) -> None:
    found = post(as_alice, fields, status=422, do="save", **wrong)

    assert focus_of(found) == [focused]
    (why,) = [attrs["aria-describedby"] for _tag, attrs in found.tags if attrs.get("id") == focused]
    assert "error-note" in [attrs.get("class") for _tag, attrs in found.tags if attrs.get("id") in str(why).split()]


def test_a_script_gets_the_form_alone(as_alice: Client, fields: Fields) -> None:
    response = as_alice.post(URL, fields | {"do": ["up:1"]}, headers=HTMX)

    assert response.content.decode().lstrip().startswith('<div id="context-settings"')


# --- The pruning agent that is gone --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["agent", "llm", "provider"])
def test_a_pruning_agent_that_is_switched_off_is_a_problem(as_alice: Client, agent: Agent, what: str) -> None:
    ContextSettings.objects.create(pk=1, pruning_agent=agent)
    row: Any = {"agent": agent, "llm": agent.llm, "provider": agent.llm.provider}[what]
    row.enabled = False
    row.save()

    found = page(as_alice, URL)

    assert "“Helper” cannot be used" in found.text
    assert sent(found, "context-form")["pruning_agent"] == ["helper"]


def test_a_pruning_agent_that_was_deleted_is_a_problem_until_one_saves(
    as_alice: Client, agent: Agent, fields: Fields
) -> None:
    post(as_alice, fields, do="save", pruning_agent="helper")
    agent.delete()

    found = page(as_alice, URL)
    post(as_alice, sent(found, "context-form"), do="save")

    assert "“helper” was deleted" in found.text
    assert "was deleted" not in page(as_alice, URL).text
    assert SettingsChange.objects.filter(key="pruning_agent").first().after == ""  # type: ignore[union-attr]


# --- Files ---------------------------------------------------------------------------------------------------------


def test_the_seeds_file_says_what_is_in_force_already(as_alice: Client) -> None:
    assert "The file says what is in force already." in upload(as_alice, DEFAULTS).text


def test_a_file_is_shown_before_it_is_saved_and_comes_back_out_the_same(as_alice: Client) -> None:
    text = DEFAULTS.replace("default_limit: 5000", "default_limit: 4500").replace('- "hybrid"', '- "truncate"')

    found = upload(as_alice, text)
    before = context_config()
    post(as_alice, sent(found, "context-form"), do="save")
    taken_out = as_alice.get(f"{URL}export.yaml")

    assert "What this file would change" in found.text
    assert "default_limit50004500" in words(found)
    assert before == ContextConfig()
    assert "attachment" in taken_out.headers["Content-Disposition"]
    assert (context_config().default_limit, context_config().chain_order[-1]) == (4500, "truncate")
    assert "The file says what is in force already." in upload(as_alice, taken_out.content.decode()).text


def test_a_files_settings_of_agents_are_shown_and_saved_with_the_rest(as_alice: Client, agent: Agent) -> None:
    found = upload(as_alice, "agents:\n  helper:\n    how: chain\n")
    before = Agent.objects.get().own_settings
    post(as_alice, sent(found, "context-form"), do="save")

    assert "agents.helper.own_settings" in words(found)
    assert before == ""
    assert Agent.objects.get().own_settings == '{"how": "chain"}'
    assert "how: chain" in as_alice.get(f"{URL}export.yaml").content.decode()


def test_what_comes_first_when_a_context_fills_is_chosen_for_each_agent(
    as_alice: Client, fields: Fields, agent: Agent
) -> None:
    found = post(as_alice, fields, **{"agents.helper.when_full": "remind"}, do="save")

    change = SettingsChange.objects.get()
    assert (change.key, change.before, change.after) == ("agents.helper.when_full", "compact", "remind")
    assert Agent.objects.get().when_full == "remind"
    assert "Remind: the agent is asked to write down what matters" in found.text


def test_a_file_says_it_too_and_one_that_does_not_leaves_it(as_alice: Client, agent: Agent) -> None:
    found = upload(as_alice, "agents:\n  helper:\n    when_full: remind\n")
    assert "agents.helper.when_full compact remind" in re.sub(r"(full|compact)(?=compact|remind)", r"\1 ", words(found))
    post(as_alice, sent(found, "context-form"), do="save")
    assert "when_full: remind" in as_alice.get(f"{URL}export.yaml").content.decode()

    post(as_alice, sent(upload(as_alice, "agents:\n  helper:\n    how: chain\n"), "context-form"), do="save")

    helper = Agent.objects.get()
    assert (helper.when_full, helper.own_settings) == ("remind", '{"how": "chain"}')


@pytest.mark.parametrize("do", ["save", "what-if", "up:1"])
def test_agents_of_a_file_that_come_back_spoiled_count_as_none(as_alice: Client, fields: Fields, do: str) -> None:
    assert "must be corrected" not in post(as_alice, fields, agents="\x00", do=do).text


def test_a_new_type_follows_the_default_that_is_left_empty(as_alice: Client, fields: Fields) -> None:
    row = {"per_llm[7].type": "new", "per_llm[7].follow_default": "on"}

    post(as_alice, fields, **row, default_limit="")

    assert context_config().per_llm[-1].limit == ContextConfig().default_limit


def test_a_wrong_limit_of_a_type_that_follows_the_default_can_be_corrected(as_alice: Client, fields: Fields) -> None:
    row = {"per_llm[7].type": "new", "per_llm[7].follow_default": "on", "per_llm[7].limit": "many"}

    found = post(as_alice, fields, **row, status=422)

    shown = field(found, "per_llm[7].limit")
    assert shown["value"] == "many"
    assert "disabled" not in shown
    assert focus_of(found) == [shown["id"]]


def test_a_wrong_default_is_told_once_and_not_of_the_types_that_follow_it(as_alice: Client, fields: Fields) -> None:
    row = {"per_llm[7].type": "new", "per_llm[7].follow_default": "on"}

    assert "1 field must be corrected" in post(as_alice, fields, **row, default_limit="x", status=422).text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agents:\n  helper:\n    when_full: never\n", "Line 3: agents.helper.when_full"),
        ("context_config:\n  goal: 0.5\n  min_limit: 3000\n", "Line 3: context_config.min_limit Must be a whole"),
        ("context_config:\n  nonsense: 1\n", "Line 2: context_config.nonsense"),
        (DEFAULTS.replace("limit: 8000", "limit: many"), "context_config.per_llm[1].limit Must be a whole"),
        (DEFAULTS.replace('- "hybrid"', '- "magic"'), "chain_order[4] There is no such strategy: magic."),
        ("context_config: [\n", "Line 2: This is not YAML"),
        ("a: &a [1]\nb: *a\n", "Aliases"),
        ("- 1\n", "a section with keys"),
        ("context_config:\n  goal: 0.9\n", "Line 2: context_config.goal Must be below the warning threshold of 0.8."),
        ("x" * 300_000, "larger than settings are"),
        ("\x00", "not YAML"),
        ("context_config: {}\n---\ncontext_config: {}\n", "not YAML"),
        ("context_config:\n  ? [goal]\n  : 0.5\n", "not YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_line_and_key(as_alice: Client, text: str, told: str) -> None:
    found = upload(as_alice, text)

    assert told in words(found)
    assert field(found, "min_limit")["value"] == "3500"


def rows(types: int, tools: int) -> str:
    limits = "".join(f"  - {{type: type{at}, limit: 4000, follow_default: false}}\n" for at in range(types))
    retries = "".join(f"      tool{at}: {{max_attempts: 7}}\n" for at in range(tools))
    return f"context_config:\n  per_llm:\n{limits}  retry_policies:\n    per_tool:\n{retries}"


def test_all_types_and_tools_of_a_file_are_saved_however_many(as_alice: Client) -> None:
    fields = sent(upload(as_alice, rows(105, 11)), "context-form")

    post(as_alice, fields, do="save", default_limit="6000")
    again = sent(page(as_alice, URL), "context-form")
    post(as_alice, again, do="save", default_limit="7000")

    stored = context_config()
    assert [llm.type for llm in stored.per_llm] == [f"type{at}" for at in range(105)]
    assert {tool for tool, _policy in stored.retry_per_tool} == {f"tool{at}" for at in range(11)}
    assert stored.default_limit == 7000


@pytest.fixture
def most_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("dialogs.compaction.settings.checking.MOST_ROWS", 5)
    monkeypatch.setattr("dialogs.compaction.settings.form.MOST_ROWS", 5)
    return 5


@pytest.mark.parametrize(
    ("types", "tools", "told"),
    [
        (6, 1, "Line 8: context_config.per_llm[5].type There may be 5 of these at most."),
        (1, 6, "Line 11: context_config.retry_policies.per_tool.tool5 There may be 5 of these at most."),
    ],
)
@pytest.mark.usefixtures("most_rows")
def test_a_file_with_more_than_the_page_takes_is_refused(as_alice: Client, types: int, tools: int, told: str) -> None:
    assert told in words(upload(as_alice, rows(types, tools)))


def test_a_row_more_than_the_page_takes_is_told_beside_it_and_nothing_is_lost(
    as_alice: Client, fields: Fields, most_rows: int
) -> None:
    added = {f"per_llm[{at}].type": f"type{at}" for at in range(3, most_rows + 1)}
    added |= {f"per_llm[{at}].limit": "4000" for at in range(3, most_rows + 1)}

    found = post(as_alice, fields, status=422, do="save", **added)

    assert "per_llm[5].type There may be 5 of these at most." in words(found)
    assert added.items() <= {name: text[0] for name, text in sent(found, "context-form").items()}.items()
    assert not SettingsChange.objects.exists()


def test_a_form_of_more_fields_than_are_read_is_refused_in_words(as_alice: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 20

    found = as_alice.post(URL, {f"per_llm[{at}].type": "x" for at in range(21)})

    assert found.status_code == 413
    assert "more than 20 fields" in found.content.decode()


def test_a_number_of_many_digits_is_saved_by_the_page_too(as_alice: Client) -> None:
    found = upload(as_alice, "context_config:\n  per_llm: [{type: a, limit: 12345678901, follow_default: false}]\n")

    post(as_alice, sent(found, "context-form"), do="save")

    assert context_config().per_llm[0].limit == 12_345_678_901


@pytest.mark.parametrize("threshold", ["0.9", "0.8"])
def test_settings_of_agents_that_need_the_files_own_threshold_are_saved_unless_it_is_taken_back(
    as_alice: Client, agent: Agent, threshold: str
) -> None:
    text = "context_config: {warning_threshold: 0.9, accept: 0.9}\nagents: {helper: {goal: 0.85}}\n"
    fields, is_saved = sent(upload(as_alice, text), "context-form"), threshold == "0.9"

    status = 200 if is_saved else 422
    found = post(as_alice, fields, status=status, do="save", warning_threshold=threshold, accept=threshold)

    assert ("agents.helper: Must be below the warning threshold of 0.8." in words(found)) is not is_saved
    assert Agent.objects.get().own_settings == ('{"goal": 0.85}' if is_saved else "")


def test_an_agent_that_was_deleted_meanwhile_takes_only_its_own_with_it(
    as_alice: Client, agent: Agent, llm: LLM
) -> None:
    Agent.objects.create(name="Pruner", slug="pruner", llm=llm)
    fields = sent(upload(as_alice, "agents:\n  helper: {how: chain}\n  pruner: {how: chain}\n"), "context-form")
    Agent.objects.get(slug="pruner").delete()

    post(as_alice, fields, do="save")

    assert Agent.objects.get().own_settings == '{"how": "chain"}'


def test_no_file_is_told(as_alice: Client) -> None:
    assert "Choose a file first." in as_alice.post(f"{URL}import/").content.decode()


# --- What would have happened --------------------------------------------------------------------------------------


def long_dialog(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="word " * 2400)
    an_answer(dialog, content="word " * 1900)
    return dialog


def test_a_dialog_over_the_limit_is_told_with_the_message_that_exceeds_it(
    as_alice: Client, dialog: Dialog, fields: Fields
) -> None:
    Agent.objects.update(context_budget=True)
    LLM.objects.update(context_length=None, compaction="automatic")
    long_dialog(dialog)

    found = words(post(as_alice, fields, do="what-if"))
    relaxed = words(post(as_alice, fields, do="what-if", default_limit="20000"))

    assert "5,000 default limit 5,000 ≈4,000" in found
    assert "with message 2 of 2" in found
    assert "20,000 default limit 20,000 ≈16,000" in relaxed
    assert "with message" not in relaxed
    assert not ContextSettings.objects.exists()


def test_a_dialog_whose_window_is_unknown_is_not_guarded(as_alice: Client, dialog: Dialog, fields: Fields) -> None:
    LLM.objects.update(context_length=None)

    assert "not guarded" in post(as_alice, fields, do="what-if").text


def test_an_llm_type_has_a_chain_of_its_own(as_alice: Client, fields: Fields) -> None:
    own = "how: chain\nbreaking_strategy:\n  chain_order: [discard_low_rel]\n"

    post(as_alice, fields, **{"per_llm[1].own": own})

    changed = SettingsChange.objects.values_list("key", "after")
    assert set(changed) == {
        ("per_llm.cloud_grok.own.how", "chain"),
        ("per_llm.cloud_grok.own.breaking_strategy.chain_order", "discard_low_rel"),
    }
    assert config_for(llm_type="cloud_grok").chain_order == ("discard_low_rel",)
    assert config_for(llm_type="gpt4") == config_for() == ContextConfig(per_llm=config_for().per_llm)
    assert "chain_order:" in Page(as_alice.get(URL).content.decode()).text
    assert "own:" in as_alice.get(f"{URL}export.yaml").content.decode()


def test_an_agent_that_is_added_can_be_chosen_and_one_with_settings_of_its_own_is_named(
    as_alice: Client, llm: LLM
) -> None:
    Agent.objects.create(name="Pruner", slug="pruner", llm=llm)
    said = words(page(as_alice, URL))
    assert ("Pruner · tiny" in said, "Agents with settings of their own" in said) == (True, False)

    Agent.objects.update(own_settings='{"how": "chain"}')

    assert "Agents with settings of their own: Pruner" in words(page(as_alice, URL))


def test_other_peoples_dialogs_are_not_looked_at(as_alice: Client, dialog: Dialog, bob: User, fields: Fields) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(owner=bob, title="Bob's secret")

    found = post(as_alice, fields, do="what-if")

    assert "Bob's secret" not in found.text
    assert "You have no dialogs yet." in found.text


def test_the_trail_is_paged(as_alice: Client, alice: User) -> None:
    SettingsChange.objects.bulk_create(SettingsChange(changed_by=alice, key=f"key_{at}.") for at in range(21))

    first, second = page(as_alice, URL), page(as_alice, f"{URL}?page=2")

    assert ("key_20." in first.text, "key_0." in first.text) == (True, False)
    assert ("key_20." in second.text, "key_0." in second.text) == (False, True)


# --- Areas, presets, and a chain that does nothing ------------------------------------------------------------------


def test_areas_of_first_priority_are_names_with_commas_between(as_alice: Client, fields: Fields) -> None:
    post(as_alice, fields, priority_areas=" To Do List,Calendar, ", do="save")

    assert context_config().priority_areas == ("To Do List", "Calendar")
    assert field(page(as_alice, URL), "priority_areas")["value"] == "To Do List, Calendar"


def test_an_area_with_a_comma_stays_one(as_alice: Client) -> None:
    found = upload(as_alice, "context_config:\n  priority_areas: ['Plans, drafts', 'the \"end\"', Calendar]\n")
    shown = field(found, "priority_areas")["value"]

    post(as_alice, sent(found, "context-form"), do="save")

    assert shown == '"Plans, drafts", the "end", Calendar'
    assert context_config().priority_areas == ("Plans, drafts", 'the "end"', "Calendar")


def test_three_sizes_of_the_window_are_offered(as_alice: Client) -> None:
    found = page(as_alice, URL)

    box = field(found, "breaking_strategy.sliding_window.max_messages")
    begin = next(at for at, (tag, attrs) in enumerate(found.tags) if tag == "datalist" and attrs["id"] == box["list"])
    assert [attrs["value"] for tag, attrs in found.tags[begin + 1 : begin + 4]] == ["16", "24", "40"]
    assert "12 to 16 for short tasks" in words(found)
