"""The plan's compression of UI data, with its worked example: two tools, eight constants, and nothing else touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from health.compaction.config import PayloadLimits, SlidingWindow
from health.compaction.trimming.payloads import HISTORY_CONFIG, compress_ui, trim


def compressed(value: Any, *, tool: str = "elementsJson", limits: PayloadLimits | None = None) -> Any:
    return json.loads(compress_ui(json.dumps(value), tool=tool, limits=limits))


def a_chain(deep: int) -> dict[str, Any]:
    """A root at level 0 whose only descendants stand one under the other."""
    return (
        {"role": f"level{deep}", "children": []}
        if deep == 5
        else {
            "role": f"level{deep}",
            "children": [a_chain(deep + 1)],
        }
    )


def nodes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(nodes, value))
    return 1 + nodes(value.get("children", [])) if isinstance(value, dict) else 0


def test_the_constants_are_those_of_the_seed() -> None:
    seed = (1000, 2000, 200, 2, 20, 200, 8)

    limits = HISTORY_CONFIG

    assert seed == (
        limits.max_text_chars,
        limits.max_data_chars,
        limits.max_ui_nodes,
        limits.max_ui_depth,
        limits.max_ui_children,
        limits.max_web_elements,
        limits.max_actions,
    )
    assert SlidingWindow().max_messages == 24


def test_the_worked_example_of_the_seed_holds() -> None:
    button = {
        "role": "AXButton",
        "title": "Submit",
        "description": "Click this button to submit the form",
        "help": "Press enter to activate",
        "position": {"x": 100, "y": 200},
        "children": [{"role": "AXStaticText", "title": str(i)} for i in range(50)],
    }
    others = [{"role": "AXButton", "title": f"other {i}"} for i in range(300)]

    result = compressed({"elements": [button, *others]})

    first, *rest = result["elements"]
    assert first == {
        "role": "AXButton",
        "title": "Submit",
        "position": {"x": 100, "y": 200},
        "children": button["children"][:20],
    }
    assert rest == others[:199]


def test_of_fifty_children_the_first_twenty_stay_also_where_there_is_room_for_all() -> None:
    result = compressed([{"role": "AXGroup", "children": [{"title": str(at)} for at in range(50)]}])

    assert [child["title"] for child in result[0]["children"]] == [str(at) for at in range(20)]


@pytest.mark.parametrize(
    ("tool", "limits", "kept"),
    [
        ("elementsJson", {}, 200),
        ("elementsJson", {"max_ui_nodes": 4}, 4),
        ("webElements", {"max_ui_nodes": 5}, 200),
        # A tool of a server is known by its own name.
        ("browser__elementsJson", {}, 200),
        ("my__web__webElements", {"max_ui_nodes": 5}, 200),
    ],
)
def test_of_three_hundred_elements_the_first_two_hundred_stay_in_order_and_web_elements_have_a_limit_of_their_own(
    tool: str, limits: dict[str, int], kept: int
) -> None:
    elements = [{"title": str(i), "help": "x"} for i in range(300)]

    result = compressed(elements, tool=tool, limits=PayloadLimits(**limits))

    assert result == [{"title": str(i)} for i in range(kept)]


def test_nodes_are_counted_in_all_and_in_document_order_and_who_lost_all_children_says_so() -> None:
    tree = [{"n": i, "children": [{"n": f"{i}.{j}"} for j in range(20)]} for i in range(50)]

    result = compressed(tree)

    assert nodes(result) == 200
    assert [len(node["children"]) for node in result[:8]] == [20] * 7 + [10]
    assert result[8]["children"] == "[truncated]"
    assert compressed([{"n": 1, "children": []}])[0]["children"] == []


def test_levels_below_the_second_become_a_mark_also_below_a_lone_root() -> None:
    for root in (compressed({"elements": [a_chain(0)]})["elements"][0], compressed(a_chain(0))):
        second = root["children"][0]["children"][0]
        assert (second["role"], second["children"]) == ("level2", "[truncated]")


@pytest.mark.parametrize(
    "element",
    [
        {"role": "x", "frame": {"origin": {"point": {"x": 1}}}, "actions": ["press", "show"]},
        {"role": "x", "elements": ["press", "show"]},
    ],
)
def test_attributes_do_not_count_as_depth_and_lists_of_words_stay(element: dict[str, Any]) -> None:
    assert compressed([element]) == [element]


def test_redundant_fields_are_removed_at_every_level() -> None:
    element = {"help": "a", "children": [{"description": "b", "title": "c", "frame": {"help": "d", "x": 1}}]}

    assert compressed([element]) == [{"children": [{"title": "c", "frame": {"x": 1}}]}]


@pytest.mark.parametrize(("key", "sign", "most"), [("title", "x", 1000), ("title", "😀", 1000), ("data", "x", 2000)])
def test_a_long_string_is_cut_to_a_thousand_characters_and_a_mark_and_data_to_two(
    key: str, sign: str, most: int
) -> None:
    assert compressed([{key: sign * 2500}])[0][key] == sign * most + "...[truncated]"
    assert len(compressed([{"src": "data:image/png;base64," + "A" * 2500}])[0]["src"]) == 2014


def test_half_a_character_pair_stays_sendable_and_numbers_keep_their_digits() -> None:
    result = compress_ui('[{"title": "\\ud83d", "x": 1.10, "help": "x"}]', tool="elementsJson")

    assert result == '[{"title": "\\ud83d", "x": 1.10}]'
    result.encode()


@pytest.mark.parametrize("content", ["", "not json", '{"elements": [', "[" * 100_000, '[{"a": 1, "a": 2}]', "null"])
def test_what_cannot_be_read_stays_as_it_is(content: str) -> None:
    assert compress_ui(content, tool="elementsJson") == content


def test_another_tool_with_the_same_result_is_not_touched() -> None:
    content = json.dumps([{"title": "x" * 5000, "help": "y"}] * 300)

    assert compress_ui(content, tool="read_file") == content


@pytest.mark.parametrize(("each", "left"), [(150, (150, 50)), (200, (200, 0))])
def test_nodes_are_counted_over_all_lists_of_a_result_and_one_after_a_full_one_adds_none(
    each: int, left: tuple[int, int]
) -> None:
    lists = {name: [{"n": f"{name}{i}"} for i in range(each)] for name in ("buttons", "links", "texts")}

    result = compressed(lists)

    assert (result["buttons"], result["links"]) == (lists["buttons"], lists["links"][: left[1]] or "[truncated]")
    assert result["texts"] == "[truncated]"


def test_a_full_list_lets_through_the_children_of_one_element_and_no_list_in_it() -> None:
    element = {"role": "x", "children": [{"n": 1}], "elements": [{"n": 2}], "nodes": []}

    result = compressed([element, *({"n": i} for i in range(300))])

    assert result[0] == {"role": "x", "children": [{"n": 1}], "elements": "[truncated]", "nodes": []}
    assert len(result) == 200


def test_the_elements_of_windows_are_cut_as_elements_are() -> None:
    windows = [{"title": name, "elements": [{"n": i} for i in range(500)]} for name in ("one", "two")]

    result = compressed({"windows": windows})

    assert [window["title"] for window in result["windows"]] == ["one", "two"]
    first, second = (window["elements"] for window in result["windows"])
    assert (len(first), second) == (198, "[truncated]")


def test_of_a_tree_that_is_still_too_large_as_many_elements_as_fit_are_kept() -> None:
    tree = json.dumps({"elements": [{"role": "button", "title": f"Button {at}"} for at in range(150)]})

    short = trim(tree, tool="elementsJson", max_chars=3_000)

    kept = json.loads(short)["elements"]
    assert kept == json.loads(tree)["elements"][: len(kept)]
    assert 2_900 < len(short) <= 3_000
