"""The picture of a compaction: well-formed, described in words, and small for long histories."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from health.compaction.terms.fates import Fate
from health.compaction.terms.outcome import CompactionOutcome, Status, Step
from health.plots import svg
from tests.health.compaction.builders import a_state

NS = "{http://www.w3.org/2000/svg}"


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
