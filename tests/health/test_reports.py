"""An outcome as text for a person and as JSON for a script."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from health.compaction.terms.outcome import Code, CompactionOutcome, Extent, Loss, Receipt, Status, Step
from health.compaction.terms.reasons import Reason, Why
from health.management.commands.compact import Fate, as_json, lines, step_line, svg
from tests.health.compaction.builders import a_state, a_unit

FOUND = {"m0": Fate.KEPT, "m1": Fate.SHORTENED, "m2": Fate.DROPPED}
STEP = Step(
    phase="truncate", estimated_before=12_000, estimated_after=3_000, changed=True, ms=12.4, why=Reason(Why.DONE)
)
NS = "{http://www.w3.org/2000/svg}"


def outcome(**fields: Any) -> CompactionOutcome:
    basis = {
        "status": Status.APPLIED,
        "state": a_state(a_unit("a lone \ud800 surrogate")),
        "estimated_tokens_before": 12_000,
        "estimated_tokens_after": 3_000,
        "counter": "cl100k_base",
        "grade": "exact",
    }
    return CompactionOutcome(**(basis | fields))


def told(**fields: Any) -> str:
    return "\n".join(lines(outcome(**fields), FOUND, limit=4_000))


def loss(text: str, *, kept: bool) -> Loss:
    return Loss(text=text, kind="identifier", source_id="m2", kept=kept)


def test_the_first_lines_say_how_much_and_what_became_of_messages() -> None:
    text = told(why=Reason(Why.EVERYTHING_FITS), warnings=(Reason(Why.UNKNOWN_STRATEGY, {"name": "foo"}),))

    assert text.splitlines()[:4] == [
        "Applied: 12,000 → 3,000 estimated tokens (cl100k_base, exact), limit 4,000.",
        "Everything fits.",
        "Warning: Unknown strategy: foo",
        "Messages: 1 kept, 1 shortened, 0 summarised, 1 dropped.",
    ]


def test_what_was_not_read_is_counted() -> None:
    coverage = tuple(
        Receipt(source_id=f"m{number}", extent=extent, read=0, total=9) for number, extent in enumerate(Extent)
    )

    assert "Removed text was read: 1 in full, 1 in part, 1 not at all." in told(coverage=coverage)


def test_coherence_is_told_with_its_embedder_where_it_was_measured() -> None:
    assert "Coherence: 0.91 (minilm)." in told(coherence=0.912, embedder="minilm")
    assert "Coherence" not in told()


def test_what_is_gone_is_named_and_what_stands_is_counted() -> None:
    text = told(losses=(loss("ORD-1", kept=True), loss("ORD-2", kept=False)))

    assert "Of 2 facts in removed text 1 still stand." in text
    assert "identifier: ORD-2 (m2)" in text
    assert "ORD-1" not in text


def test_a_long_list_is_cut_and_says_so() -> None:
    text = told(losses=tuple(loss(f"ORD-{number} " + "x" * 500, kept=False) for number in range(30)))

    assert "Only in the original now (30):" in text
    assert "… and 10 more: see --json." in text
    assert max(map(len, text.splitlines())) < 120


def test_a_failure_says_why_and_nothing_of_losses() -> None:
    text = told(status=Status.FAILED, code=Code.BREAKER_FAILED, why=Reason(Why.NOT_UNDER))

    assert text.startswith("Failed: ")
    assert "The chain did not come under the limit." in text
    assert "facts" not in text


def test_a_step_says_what_it_did_and_one_that_did_nothing_says_why() -> None:
    idle = Step(phase="hybrid", estimated_before=9, estimated_after=9, changed=False, why=Reason(Why.NOTHING_MORE))

    assert step_line(STEP).split() == ["truncate", "12,000", "→", "3,000", "12", "ms", "done"]
    assert "as before" in step_line(idle)
    assert step_line(idle).endswith("Nothing more can go.")


def test_json_holds_everything_and_can_be_read_back() -> None:
    messages = [{"role": "user", "content": "a lone \ud800 surrogate"}]

    why = Reason(Why.REDUCED, {"tokens": 3_000, "limit": 4_000})
    value = as_json(
        outcome(why=why, steps=(STEP,), losses=(loss("ORD-2", kept=False),), messages=messages), FOUND, limit=4_000
    )

    back = json.loads(json.dumps(value))
    assert back["status"] == "applied"
    assert back["reason"] == "Context reduced to ≈3,000 / 4,000 tokens."
    assert back["why"]["code"] == "reduced"
    assert (back["steps"][0]["phase"], back["steps"][0]["note"]) == ("truncate", "done")
    assert back["fates"] == {"m0": "kept", "m1": "shortened", "m2": "dropped"}
    assert back["losses"][0]["text"] == "ORD-2"
    assert back["messages"] == messages


def drawn(found: Mapping[str, Fate], *steps: Step, before: int = 900, limit: int = 300) -> ET.Element:
    outcome = CompactionOutcome(
        status=Status.APPLIED, state=a_state(), estimated_tokens_before=before, estimated_tokens_after=300, steps=steps
    )
    return ET.fromstring(svg(outcome, found, limit=limit))


def step(phase: str, before: int, after: int) -> Step:
    return Step(phase=phase, estimated_before=before, estimated_after=after, changed=before != after)


def strip(picture: ET.Element) -> list[str]:
    return [title.text or "" for title in picture.iter(f"{NS}title")][1:]


def test_the_picture_says_in_words_what_it_shows() -> None:
    picture = drawn({"m0": Fate.KEPT, "m1": Fate.DROPPED}, step("truncate", 900, 300))

    assert picture.get("role") == "img"
    assert picture.get("aria-labelledby") == "title desc"
    told = picture.findtext(f"{NS}desc") or ""
    assert "900 estimated tokens became 300; the limit is 300." in told
    assert "1 kept, 0 shortened, 0 summarised, 1 dropped" in told
    assert "truncate: 900 to 300." in told


def test_bars_are_as_long_as_the_tokens_they_stand_for() -> None:
    picture = drawn({}, step("truncate", 900, 300))

    (before, after) = [float(bar.get("width", 0)) for bar in picture.iter(f"{NS}rect") if bar.get("x") == "190"]
    assert abs(before / after - 3) < 0.01


def test_neighbours_of_one_fate_are_one_piece() -> None:
    found = {f"m{number}": Fate.DROPPED if 1 < number < 40_000 else Fate.KEPT for number in range(50_000)}

    assert strip(drawn(found)) == [
        "messages 1 to 2: kept",
        "messages 3 to 40000: dropped",
        "messages 40001 to 50000: kept",
    ]


def test_nothing_to_show_is_still_a_picture() -> None:
    assert strip(drawn({}, before=0)) == []


def test_names_cannot_break_out_of_the_picture() -> None:
    picture = drawn({}, step('</desc><script>alert("x")</script>', 9, 9))

    assert not list(picture.iter(f"{NS}script"))
