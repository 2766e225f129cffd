"""Payload trimming in general: JSON stays JSON, the line that matters stays, and bad input stays as it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from health.compaction.config import PayloadLimits
from health.compaction.trimming.payload_text import clip
from health.compaction.trimming.payloads import trim


def rows(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"ORD-{i:04}", "status": "shipped", **fields} for i in range(count)]


def seconds(content: str) -> float:
    begun = time.process_time()
    trim(content)
    return time.process_time() - begun


def a_log(count: int) -> list[str]:
    return [f"2026-01-01 10:00:{i % 60:02} INFO stored item {i}" for i in range(count)]


# JSON


def test_a_long_array_keeps_its_ends_and_a_count() -> None:
    trimmed = json.loads(trim(json.dumps({"page": 1, "orders": rows(100)})))

    assert trimmed["page"] == 1
    assert trimmed["orders"] == [*rows(100)[:6], "[… 92 of 100 items left out …]", *rows(100)[-2:]]


def test_keys_and_structure_of_records_stay() -> None:
    record = {f"field{i}": {"value": i} for i in range(30)}

    trimmed = json.loads(trim(json.dumps([record] * 50)))

    assert trimmed[0] == record


@pytest.mark.parametrize(
    ("change", "keep"),
    [
        ({"status": "refused"}, ""),
        ({"error": {"code": 17}}, ""),
        ({"note": "Payment failed"}, ""),
        ({}, "ORD-0050"),
    ],
)
def test_the_one_element_with_another_status_an_error_or_a_word_to_keep_stays(
    change: dict[str, Any], keep: str
) -> None:
    orders = rows(100, error=None)
    orders[50] |= change

    assert orders[50] in json.loads(trim(json.dumps(orders), keep=frozenset({keep})))


def test_where_everything_differs_nothing_stands_out() -> None:
    orders = [{"status": f"s{i}", "error": "no stock"} for i in range(100)]

    assert len(json.loads(trim(json.dumps(orders)))) == 9


def test_a_long_map_of_records_is_cut_like_an_array() -> None:
    users = {f"user{i}": {"age": i} for i in range(500)}

    trimmed = json.loads(trim(json.dumps(users)))

    assert len(trimmed) == 41
    assert trimmed["user0"] == {"age": 0}
    assert "[… 460 of 500 keys from user38 left out …]" in trimmed


def test_numbers_keep_their_digits() -> None:
    content = json.dumps(rows(100)).replace('"ORD-0001"', "1.10").replace('"ORD-0002"', "12345678901234567890.5")

    assert '{"id": 1.10,' in trim(content)
    assert '{"id": 12345678901234567890.5,' in trim(content)


def test_a_repeated_key_is_no_reason_to_lose_a_value() -> None:
    content = '{"a": [' + ", ".join(["1"] * 100) + '], "a": 2}'

    assert trim(content) == content


def test_a_log_inside_json_keeps_its_error() -> None:
    lines = a_log(300)
    lines[150] = "2026-01-01 10:00:00 ERROR disk full"

    trimmed = json.loads(trim(json.dumps({"exit_code": 1, "stdout": "\n".join(lines)})))

    assert trimmed["exit_code"] == 1
    assert "ERROR disk full" in trimmed["stdout"]
    assert len(trimmed["stdout"]) < 2100


def test_a_long_string_inside_json_keeps_both_ends() -> None:
    text = json.loads(trim(json.dumps({"text": "begin " + "word " * 1000 + "end"})))["text"]

    assert (text[:5], text[-3:], len(text)) == ("begin", "end", 1000)


@pytest.mark.parametrize("most", [2000, 600, 200, 60])
def test_json_obeys_a_budget_and_stays_json(most: int) -> None:
    content = json.dumps({"orders": rows(100, note='a "quoted" note'), "text": "é" * 3000})

    trimmed = trim(content, max_chars=most)

    json.loads(trimmed)
    assert len(trimmed) <= most


def test_pretty_json_that_is_short_loses_its_indentation_only() -> None:
    content = json.dumps({"a": [1, 2], "b": {"c": "d"}}, indent=4)

    assert trim(content) == '{"a": [1, 2], "b": {"c": "d"}}'


# Logs


def test_one_error_in_a_long_log_stays_with_its_neighbours() -> None:
    lines = a_log(5000)
    lines[2500] = "2026-01-01 10:00:41 ERROR could not write /var/data/17"

    trimmed = trim("\n".join(lines))

    assert "\n".join(lines[2499:2502]) in trimmed
    assert len(trimmed) < 1500


def test_similar_lines_are_told_once_with_a_count() -> None:
    assert "[… 90 similar lines left out …]" in trim("\n".join(a_log(100)))


def test_a_traceback_stays_whole() -> None:
    trace = ["Traceback (most recent call last):", '  File "a.py", line 3, in <module>', "    run()", "Stop: now"]

    trimmed = trim("\n".join([*a_log(200), *trace, *a_log(200)]))

    assert "\n".join(trace) in trimmed


@pytest.mark.parametrize("line", ["2026-01-01 10:00:00 INFO batch {}: 0 errors", "WARNING: retry {}"])
def test_a_denied_error_is_no_error_and_a_flood_of_one_warning_is_told_like_any_repetition(line: str) -> None:
    assert len(trim("\n".join(map(line.format, range(1000)))).splitlines()) == 11


def test_a_line_that_occurs_once_or_has_a_word_to_keep_stays() -> None:
    lines = a_log(300)
    lines[100] = "2026-01-01 10:00:00 INFO listening on port 8443"

    trimmed = trim("\n".join(lines), keep=frozenset({"150"}))

    assert lines[100] in trimmed
    assert "stored item 150\n" in trimmed


@pytest.mark.parametrize("word", ["build-77", "bauteil-ü7", "v2"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_word_to_keep_is_found_behind_an_escape(word: str, is_ascii: bool) -> None:
    items = [{"note": f"stored\nitem {number}\t"} for number in range(100)]
    items[50]["note"] = f'seen\n{word}\tby "us"'

    assert items[50] in json.loads(trim(json.dumps(items, ensure_ascii=is_ascii), keep=frozenset({word})))


def test_a_log_within_a_budget_keeps_the_error_longest() -> None:
    lines = [
        f"2026-01-01 10:00:00 INFO {word} {i}" for i, word in enumerate(f"w{chr(97 + i % 26) * 9}" for i in range(600))
    ]
    lines[300] = "2026-01-01 10:00:00 ERROR lost"

    trimmed = trim("\n".join(lines), max_chars=1000)

    assert len(trimmed) <= 1000
    assert lines[300] in trimmed


def test_a_tight_budget_keeps_errors_before_their_neighbours() -> None:
    lines = [f"2026-01-01 10:00:00 INFO {'abcdefghijkl'[i % 12] * (2 + i // 12)}" for i in range(600)]
    errors = [f"2026-01-01 10:00:00 ERROR lost {name}" for name in ("ann", "ben", "cem", "dan", "eve", "fay")]
    lines[100:400:50] = errors

    trimmed = trim("\n".join(lines), max_chars=1200)

    assert all(error in trimmed for error in errors)


# Diffs, blobs, and what is neither


def test_a_diff_keeps_every_change_and_few_lines_around() -> None:
    around = [f" line {i}" for i in range(8)]
    diff = ["--- a/x.py", "+++ b/x.py", "@@ -1,20 +1,20 @@", *around, "-old", "+new", *around]

    trimmed = trim("\n".join(diff)).splitlines()

    assert trimmed == [
        *diff[:4],
        "[… 6 unchanged lines left out …]",
        " line 7",
        "-old",
        "+new",
        " line 0",
        "[… 7 unchanged lines left out …]",
    ]


def test_an_encoded_blob_becomes_a_label() -> None:
    blob = "iVBORw0KGgoAAAANSUhEUgABm4zQ" * 40

    assert trim(f"The image: {blob} and more") == "The image: [… base64, 1120 characters left out …] and more"


def test_a_wrapped_blob_becomes_a_label() -> None:
    line = "MIIEpAIBAAKCAQEA7bq2Xy9Zk3uVhW0tS5rN8mPdGfJcLoQwEiYxTzRvBaHnKs41"

    trimmed = trim("-----BEGIN KEY-----\n" + f"{line}\n" * 10 + "-----END KEY-----")

    assert trimmed.splitlines()[1:] == ["[… base64, 649 characters left out …]", "-----END KEY-----"]


@pytest.mark.parametrize("text", ["-" * 500, "a" * 500, "/usr/lib/python/site/packages" * 20, "0123456789" * 50])
def test_a_long_run_that_is_no_blob_stays(text: str) -> None:
    assert trim(text) == text


def test_words_and_code_are_none_of_its_business() -> None:
    prose = "\n".join(
        f"{word} is a word." for word in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
    )
    code = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"

    assert (trim(prose), trim(code)) == (prose, code)


def test_anything_obeys_a_budget_when_there_is_one() -> None:
    assert len(trim("word " * 1000, max_chars=300)) <= 300
    assert trim("word " * 1000, max_chars=0) == ""


def test_a_clipped_text_tells_how_much_is_missing() -> None:
    clipped = clip("x" * 1000, 100)

    assert f"[… {1000 - clipped.count('x')} characters left out …]" in clipped
    assert len(clipped) <= 100


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1, 2", '{"a": }', "[" * 50_000 + "]" * 50_000, "\x00\ufffd", "[INFO] x]", "}{"],
)
def test_malformed_input_comes_back(content: str) -> None:
    assert trim(content) == content


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10_000_000,
        "a" * 10_000_000,
        "aB3" * 3_000_000,
        "\n" * 10_000_000,
        "@@ -1" * 2_000_000,
    ],
    ids=["brackets", "one word", "one blob", "newlines", "hunk heads"],
)
def test_ten_megabytes_of_anything_are_looked_at_once(content: str) -> None:
    assert seconds(content) < 12  # 5 ms for 1,000 tokens


@pytest.mark.parametrize("form", [lambda count: json.dumps(rows(count)), lambda count: "\n".join(a_log(count))])
def test_time_grows_with_the_payload_and_not_faster(form: Callable[[int], str]) -> None:
    assert seconds(form(16_000)) < 4 * 3 * seconds(form(4_000))


def test_the_limits_are_set_in_one_place() -> None:
    assert len(json.loads(trim(json.dumps(rows(100)), limits=PayloadLimits(array_head=1, array_tail=1)))) == 3


@pytest.mark.parametrize("content", [json.dumps(rows(100)), "\n".join(a_log(100)), "x: " + "aB3kQ9zLmN7pR5tVwY1c" * 20])
def test_what_was_trimmed_is_not_trimmed_again(content: str) -> None:
    once = trim(content)

    assert once != content
    assert trim(once) == once


@pytest.mark.parametrize("text", ["[INFO] begin " + "word " * 200 + "[end]", "[…] one. " + "two. " * 200 + "[…]"])
def test_words_in_brackets_are_not_taken_for_json(text: str) -> None:
    trimmed = trim(text, max_chars=200)

    assert trimmed.startswith(text[:20])
