"""Search finds the same on both databases, by one table of queries. Nothing that a person types is an operator."""

from __future__ import annotations

import pytest
from django.utils import timezone

from dialogs.models import Dialog, Message, SearchText
from dialogs.models.message import MessageOrigin, Role
from dialogs.pages.writes import create_dialog
from dialogs.providers.base import ToolCall
from dialogs.transcript.search import KEPT_BYTES, QUERY_WORDS, index_words, query_words, search
from dialogs.transcript.writes.dialog_row import add_message, erase_dialog
from dialogs.transfer.exporting import export_json
from dialogs.transfer.importing import import_dialog
from dialogs.turns.writes.tool_calls import add_calls

ALLERGY = "小明对花生过敏，千万别放花生酱。"
TEXTS = (
    ALLERGY,
    "The deploy key lives in /srv/keys/deploy_key.pem; its id is AKIA-7731.",
    "Réunion à l’Élysée: the naïve plan is off.",
    "SELECT * FROM orders WHERE total >= 12.50 OR 1=1 -- \"quoted\" 'too'",
    "サーバーを再起動してください",
    "서버를 다시 시작하세요",
    "ＦＵＬＬ ｗｉｄｔｈ 123",
)


def say(dialog: Dialog, content: str) -> Message:
    row = Dialog.objects.get(pk=dialog.pk)
    message = add_message(row, role=Role.USER, origin=MessageOrigin.TYPED, content=content, parent=row.current_leaf)
    row.save()
    return message


@pytest.fixture
def filled(dialog: Dialog) -> Dialog:
    for text in TEXTS:
        say(dialog, text)
    return dialog


def found(dialog: Dialog, query: str) -> list[str]:
    return [hit.message.content for hit in search(dialog.pk, query, limit=10)]


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("过敏", 0),  # in the middle of a run of characters
        ("花生过敏", 0),
        ("敏", 0),  # only ever second in its pairs
        ("酱", 0),  # the last before a full stop
        ("小", 0),
        ("deploy", 1),
        ("DEPLOY", 1),
        ("deploy_key", 1),
        ("/srv/keys", 1),
        ("akia-7731", 1),
        ("7731", 1),
        ("dep", 1),  # the beginning of a word
        ("reunion", 2),
        ("Élysée", 2),
        ("NAÏVE plan", 2),
        ("12.50", 3),
        ("total >= 12.50 OR", 3),
        ("再起動", 4),
        ("서버", 5),
        ("full width", 6),
    ],
)
def test_a_query_finds_its_message(filled: Dialog, query: str, at: int) -> None:
    assert found(filled, query) == [TEXTS[at]]


@pytest.mark.parametrize(
    "query",
    [
        "", "   ", '"', "'", '"unbalanced', "deploy AND", "NOT", "NEAR(deploy, 3)", "words:deploy", "deploy*",
        "^deploy", "a:*", "| !", "(", ")", "\\", "%", "_", ";--", "'; DROP TABLE dialogs_message; --", "<->",
        "deploy & ", "\x00", "-", "*", "{words}", "+", "🙂", "a" * 5_000, "花" * 5_000, "\ud83d", "deploy\nkey",
    ],
)  # fmt: skip
def test_whatever_is_typed_is_no_operator(filled: Dialog, query: str) -> None:
    for any_word in (False, True):
        hits = search(filled.pk, query, limit=10, any_word=any_word)

        assert len(hits) <= len(TEXTS)
    assert Message.objects.filter(dialog=filled).count() == len(TEXTS)


def test_every_word_must_occur_unless_any_will_do(filled: Dialog) -> None:
    assert found(filled, "deploy reunion") == []
    assert {hit.message.content for hit in search(filled.pk, "deploy reunion", limit=10, any_word=True)} == {
        TEXTS[1],
        TEXTS[2],
    }


def test_the_best_match_comes_first(dialog: Dialog) -> None:
    say(dialog, "The budget, and much else: " + " ".join(f"word{n}" for n in range(500)))
    best = say(dialog, "The budget is 40,000.")

    assert found(dialog, "budget")[0] == best.content
    assert len(search(dialog.pk, "budget", limit=1)) == 1


def test_a_word_that_few_messages_have_counts_more_than_a_frequent_one(dialog: Dialog) -> None:
    for name in ("alpha", "beta", "gamma"):
        say(dialog, f"The deploy of {name}.")
    rare = say(dialog, "The password, which nobody may write down anywhere.")

    hits = search(dialog.pk, "deploy password", limit=4, any_word=True)

    assert [hit.message for hit in hits][:1] == [rare]
    assert len(hits) == 4


def test_another_dialog_is_never_searched(filled: Dialog) -> None:
    other = create_dialog(owner=filled.owner, agent=filled.agent)
    say(other, "过敏 as well")

    assert found(filled, "过敏") == [ALLERGY]
    assert found(other, "deploy") == []


def test_a_snippet_is_the_text_around_the_word(dialog: Dialog) -> None:
    say(dialog, "before " * 200 + "the NEEDLE here " + "after " * 200)

    (hit,) = search(dialog.pk, "needle", limit=1)

    assert "NEEDLE" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 260


def test_what_an_answer_calls_is_found_by_its_arguments(dialog: Dialog) -> None:
    message = say(dialog, "I write it down.")
    add_calls(message, [ToolCall(id="c1", name="write_file", arguments='{"path": "allergies.txt"}')])

    assert found(dialog, "allergies") == found(dialog, "write_file") == [message.content]


def test_a_vast_message_is_kept_within_bounds() -> None:
    words = index_words(" ".join(f"id{n}" for n in range(200_000)), "花" * 100)

    assert 10_000 < len(words.encode()) < KEPT_BYTES
    assert len(query_words("a b c d " + " ".join(f"w{n}" for n in range(100)))) == QUERY_WORDS


def test_a_vast_message_can_be_said_and_found(dialog: Dialog) -> None:
    say(dialog, "".join(chr(0x4E00 + n % 20_000) for n in range(300_000)))

    assert len(found(dialog, "一丁")) == 1


def test_an_imported_dialog_is_searched_as_the_original(filled: Dialog) -> None:
    copy = import_dialog(owner=filled.owner, data=export_json(filled))

    assert found(copy, "花生过敏") == [ALLERGY]
    assert SearchText.objects.filter(message__dialog=copy).count() == len(TEXTS)


def test_erasing_a_dialog_erases_its_words(filled: Dialog) -> None:
    filled.trashed_at = timezone.now()
    filled.save()

    erase_dialog(dialog=filled)

    assert not SearchText.objects.exists()
