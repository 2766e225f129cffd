"""Messages as passages are chosen from them: their chunks, as whose words they are weighed, what each leans on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction.choosing.sources import Frame, Source, begins, leaning, sources_of, unsaid
from health.compaction.reading.force import Place
from health.compaction.terms.units import Role, Unit
from tests.health.compaction.builders import a_round, a_unit

ALL = Frame(kept=frozenset(), room=0)


def sources(*units: Unit) -> list[Source]:
    return sources_of(units, ALL)


def leans(*units: Unit, beside: dict[Place, list[Place]] | None = None) -> dict[str, list[str]]:
    """What each chunk leans on, in words."""
    found = sources(*units)
    places = [(at, number) for at, source in enumerate(found) for number in range(len(source.chunks))]
    texts = [found[at].chunks[number].text for at, number in places]
    leant = leaning(found, places, begins(found, places, units), beside or {})
    return {text: [texts[at] for at in ones] for text, ones in zip(texts, leant, strict=True) if ones}


def said_by_agent(text: str) -> Unit:
    return a_unit(text, role=Role.ASSISTANT)


@pytest.mark.parametrize(
    ("units", "leant"),
    [
        ([said_by_agent("Rain."), said_by_agent("Which colour?"), a_unit("Blue. And dark.")],
         {"Blue.": ["Which colour?"]}),
        ([said_by_agent("Which colour?"), said_by_agent("Blue.")], {}),
        ([said_by_agent("Which colour?"), a_unit(f"{'so ' * 60}blue.")], {}),
        ([a_unit("Rain. It left Porto. It moved on."), said_by_agent("They sank.")],
         {"It left Porto.": ["Rain."], "It moved on.": ["It left Porto."], "They sank.": ["It moved on."]}),
        ([a_unit("It left Porto.")], {}),
        ([a_unit("<output>It left.\n\nIt moved.")], {}),
        (a_round("Look.", "fine"), {"fine": ["look"]}),
        (a_round("Look.", "fine")[1:], {}),
    ],
    ids=["a reply", "who asked", "a long reply", "what it says", "nothing before", "pasted output", "a result",
         "a result without its call"],
)  # fmt: skip
def test_a_chunk_leans_on_what_it_makes_little_sense_without(units: list[Unit], leant: dict[str, list[str]]) -> None:
    assert leans(*units) == leant


def a_call(arguments: str, result: str, said: str = "") -> tuple[Unit, ...]:
    asked, *results = a_round(said, result)
    return (replace(asked, calls=(replace(asked.calls[0], arguments=arguments),)), *results)


def test_the_rest_of_a_call_and_its_result_lean_on_its_beginning() -> None:
    found = leans(*a_call('{"text": "One two three. Four five six. Then seven."}', "fine"))

    assert list(found) == ["Four five six.", "Then seven.", "fine"]
    assert {tuple(leant) for leant in found.values()} == {("look text=One two three.",)}


def test_a_result_that_was_told_anew_is_gone_with_its_call_and_not_with_what_was_said() -> None:
    asked = '{"order": "A-1041"}'
    units = (*a_call(asked, "status=packed", "Look."), *a_call(asked, "status=shipped", "Again."))

    assert [source.text for source in sources(*units)] == ["Look.", "Again.", "look order=A-1041", "status=shipped"]


def test_a_sentence_that_another_took_the_place_of_is_gone_and_nothing_else_of_its_message() -> None:
    answered = a_call('{"text": "Rain again, the whole day"}', "fine", "Rain again. The berth is 7. Go on.")

    old, new = "The toll is 3 euros. The berth is 7. Look.", "The berth is 8 now. The toll is 4 euros now."
    stated, said, called, *_ = sources(a_unit(old), *answered, a_unit(new))

    assert [chunk.text for chunk in stated.chunks] == ["Look."]
    assert [chunk.text for chunk in said.chunks] == ["Rain again.", "Go on."]
    assert "".join(chunk.text for chunk in called.chunks) == called.text


def test_a_value_leans_on_the_newest_of_the_same_subject_beside_what_else_it_leans_on() -> None:
    old, question, new = a_unit("Marta waits.", id="a"), said_by_agent("And who comes?"), a_unit("Peter.", id="b")

    found = leans(old, question, new, beside={("b", 0): [("a", 0), ("gone", 0)], ("gone", 0): [("a", 0)]})

    assert found == {"Peter.": ["And who comes?", "Marta waits."]}


def test_each_chunk_stands_where_it_says_though_an_earlier_choice_left_gaps() -> None:
    (source,) = sources(a_unit("One two. […] Three four. Five six. […] Seven."))

    assert [chunk.text for chunk in source.chunks] == ["One two.", "Three four.", "Five six.", "Seven."]
    assert [source.text[chunk.start : chunk.end] for chunk in source.chunks] == [one.text for one in source.chunks]


@pytest.mark.parametrize(
    ("unit", "voice"),
    [
        (a_unit("Go on."), Role.USER),
        (a_unit("Go on.", framed=True), Role.ASSISTANT),
        (a_unit("typed by hand " * 300), Role.TOOL),
        (a_unit("stdout: fine"), Role.TOOL),
    ],
    ids=["typed", "put before every conversation", "longer than anybody types", "output"],
)
def test_a_users_message_is_weighed_as_the_words_of_whoever_made_it(unit: Unit, voice: Role) -> None:
    assert [source.voice for source in sources(unit)] == [voice]


def test_of_sentences_without_a_blank_between_them_only_the_one_out_of_force_is_gone() -> None:
    old, _ = sources(a_unit("泊位是7号。走吧。"), a_unit("泊位现在是8号。"))

    assert [chunk.text for chunk in old.chunks] == ["走吧。"]


def test_of_texts_the_last_are_unsaid_that_repeat_neither_what_is_chosen_nor_what_stands_nor_each_other() -> None:
    texts = ["heron", "a stone", "Heron!", "brook", "moss", "brook"]

    assert unsaid(texts, [5], [a_unit("A stone.")]) == [4, 2]
