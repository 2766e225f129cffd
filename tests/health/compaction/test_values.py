"""The newest value wins: which sentences are no longer in force, and which only look alike."""

from __future__ import annotations

import pytest

from health.compaction.units import Kind, Role, Unit
from health.compaction.values import Said, in_force, is_question, outdated, states_a_value

# Talk around the rows: what a conversation is about must stand out from something.
AROUND = (
    "The weather has turned cold up here.",
    "My sister plays the cello in a small orchestra.",
    "We watched an old film about whales.",
    "那部电影很长但是很好看。",
)


def gone(*said: str) -> list[str]:
    """The sentences of a person that are no longer in force after all these messages."""
    messages = [Said(Role.USER, text) for text in (*AROUND, *said)]
    found = outdated(messages)
    return [messages[one.message].text[one.start : one.end] for one in found]


@pytest.mark.parametrize(
    ("said", "stale"),
    [
        # the same subject, another value of the same sort
        (["The dentist is at 9:30.", "The dentist moved to 11:15."], "The dentist is at 9:30."),
        (["Our rent is 700 euros.", "From May on the rent will be 760 euros."], "Our rent is 700 euros."),
        (["Rehearsal is on Tuesday.", "Rehearsal takes place on Thursday."], "Rehearsal is on Tuesday."),
        (["Submit the thesis by 3 June.", "The thesis is due 17 June."], "Submit the thesis by 3 June."),
        (["Ask Greta about the invoice.", "Pedro handles the invoice nowadays."], "Ask Greta about the invoice."),
        (["The server listens on port 8080.", "Put the server on port 9090."], "The server listens on port 8080."),
        (["the archive runs on Oracle.", "We moved the archive to Redis."], "the archive runs on Oracle."),
        # without the subject, right behind
        (["The dentist is at 9:30.", "No, 10:30."], "The dentist is at 9:30."),
        (["Rehearsal is on Tuesday.", "Hm, that is a holiday. Friday then."], "Rehearsal is on Tuesday."),
        # a correction that names what it corrects
        (["The dentist is at 9:30.", "Not 9:30 but 10:30 for the dentist."], "The dentist is at 9:30."),
        (["The flyers cost 90 euros.", "It is 120 instead of 90 for the flyers."], "The flyers cost 90 euros."),
        # withdrawn
        (["The dentist is at 9:30.", "The dentist is cancelled."], "The dentist is at 9:30."),
        (["Order 40 flyers for the fair.", "We no longer need flyers."], "Order 40 flyers for the fair."),
        # a wish
        (["Write the recap as a list.", "The recap should be one page of prose."], "Write the recap as a list."),
        (["Paint the balcony grey.", "I'd rather have the balcony in ochre."], "Paint the balcony grey."),
        # what binds is taken back in so many words
        (["Always sign the letters.", "From now on no signature on letters."], "Always sign the letters."),
        # asked for politely
        (["The dentist is at 9:30.", "Could we make the dentist 12:45?"], "The dentist is at 9:30."),
        # Chinese
        (["牙医约在9:30。", "牙医改到11:15。"], "牙医约在9:30。"),
        (["排练定在周二。", "排练挪到周四了。"], "排练定在周二。"),
        (["海报预算是700元。", "海报预算改成760元。"], "海报预算是700元。"),
        (["论文6月3日交。", "论文延到6月17日。"], "论文6月3日交。"),
        (["发布会找李娜。", "发布会由孙强负责。"], "发布会找李娜。"),
        (["排练定在周二。", "不对，周五。"], "排练定在周二。"),
        (["阳台刷灰色。", "阳台还是换成米色。"], "阳台刷灰色。"),
    ],
)
def test_a_later_value_takes_the_place_of_an_earlier_one(said: list[str], stale: str) -> None:
    assert gone(*said) == [stale]


@pytest.mark.parametrize(
    "said",
    [
        # another subject of the same sort
        ["The dentist is at 9:30.", "The optician is at 11:15."],
        ["The morning bus leaves at 8:05.", "The evening bus leaves at 18:20."],
        ["The rent of the first office is 700 euros.", "The second office has a rent of 900 euros."],
        ["Ask Greta about the invoice.", "Ask Pedro about the parcel."],
        # one more
        ["Ask Greta about the invoice.", "Pedro also knows about the invoice."],
        ["Rehearsal is on Tuesday.", "Another rehearsal is on Friday."],
        ["Order 40 flyers.", "A separate batch of 15 flyers goes to Oslo."],
        ["The rent is 700 euros.", "The rent was 650 last year, for comparison."],
        # something of it
        ["The ferry leaves at 16:50.", "The counter for the ferry closes at 15:30."],
        ["Submit the thesis by 3 June.", "A draft of the thesis goes out on 20 May."],
        # the same again
        ["The dentist is at 9:30.", "Remember: the dentist is at 9:30."],
        # rules about one thing that do not exclude each other
        ["Never push to main without a review.", "Please name the branches after the ticket."],
        ["Always run the tests before you push.", "Use fixtures in the tests."],
        ["Never deploy on a Friday.", "Show me the deploy log in the end."],
        # a question, a further wish, a paste
        ["The dentist is at 9:30.", "Is the dentist open at 13:00?"],
        ["I'd like a sandwich with ham.", "I'd like a sandwich with cheese."],
        ["The server listens on port 8080.", "```\nserver: port 9090\n```"],
        ["Greta likes tea.", "Pedro came by."],
        # Chinese
        ["牙医约在9:30。", "眼科约在11:15。"],
        ["发布会找李娜。", "发布会还有孙强帮忙。"],
        ["排练定在周二。", "另外周五加一次排练。"],
        ["排练定在周二。", "排练是周二吗？"],
    ],
)
def test_what_only_looks_alike_stays(said: list[str]) -> None:
    assert gone(*said) == []


def test_going_back_to_the_first_value_leaves_only_what_was_said_last() -> None:
    said = ["Rehearsal is on Tuesday.", "Rehearsal moves to Thursday.", "Rehearsal is back on Tuesday."]

    assert gone(*said) == said[:2]


def test_of_a_value_changed_twice_the_third_stands() -> None:
    said = ["The rent is 700 euros.", "The rent rises to 760 euros.", "The rent is 745 euros now."]

    assert gone(*said) == said[:2]


def test_a_sentence_beside_the_outdated_one_stands() -> None:
    said = "The dentist is at 9:30. Bring the insurance card."

    assert gone(said, "The dentist moved to 11:15.") == ["The dentist is at 9:30."]


def test_what_the_assistant_said_back_is_outdated_too() -> None:
    messages = [
        *(Said(Role.USER, text) for text in AROUND),
        Said(Role.USER, "The dentist is at 9:30."),
        Said(Role.ASSISTANT, "Noted: 9:30. Anything else?"),
        Said(Role.USER, "The dentist moved to 11:15."),
        Said(Role.ASSISTANT, "Noted: 11:15."),
    ]

    found = {messages[one.message].text[one.start : one.end]: one.by for one in outdated(messages)}

    assert found == {"The dentist is at 9:30.": 6, "Noted: 9:30.": 6}


def test_what_compaction_wrote_and_what_a_client_puts_first_states_nothing() -> None:
    def unit(number: int, text: str, **fields: object) -> Unit:
        return Unit(id=f"m{number}", role=Role.USER, content=text, **fields)  # type: ignore[arg-type]

    around = [unit(number, text) for number, text in enumerate(AROUND)]
    old, new = "The dentist is at 9:30.", "The dentist moved to 11:15."

    assert in_force((*around, unit(8, old), unit(9, new))).gone == {"m8": ((0, len(old)),)}
    assert in_force((*around, unit(8, old), unit(9, new, framed=True))).gone == {}
    assert in_force((*around, unit(8, old, kind=Kind.SUMMARY), unit(9, new))).gone == {}


@pytest.mark.parametrize(("sentence", "states"), [("The bus leaves at 8:05.", True), ("Greta likes tea.", False)])
def test_a_time_is_a_value_and_a_name_alone_is_none(sentence: str, states: bool) -> None:
    assert states_a_value(sentence) is states


@pytest.mark.parametrize(("sentence", "asks"), [("Is it at 9:30?", True), ("Could you make it 9:30?", False)])
def test_a_request_in_the_form_of_a_question_is_none(sentence: str, asks: bool) -> None:
    assert is_question(sentence) is asks


def test_a_long_history_about_one_thing_costs_time_in_proportion() -> None:
    """Each is compared with a few: with all of them it would take minutes."""
    said = [f"The rent of flat x{number} is {number} euros." for number in range(5_000)]

    assert gone(*said, "Is that all?") is not None
