"""The estimate of a request: images by family and by reports, and the margin where nobody knows how a model counts."""

from __future__ import annotations

import pytest

from dialogs.context.estimate import Estimate, RequestEstimate, Sizing, estimate, estimate_of, present_context
from dialogs.context.material import units_of
from dialogs.context.writes import learn_from_usage
from dialogs.llms.counter import counter_of
from dialogs.models import LLM, Blob, Dialog
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.terms.ports import Kit
from health.tokens.calibration import RawEstimate
from tests.dialogs.compacting_builders import a_history, calibrate
from tests.health.tokens.test_images import png


def guessed(dialog: Dialog) -> Estimate:
    context = present_context(dialog_to_drive(dialog.pk))
    return estimate(context, [], counter_of(dialog.llm))


def show(dialog: Dialog, *, images: int, url: str) -> None:
    """Alice shows so many, each kept apart from its message as a client's images are."""
    blob, _made = Blob.objects.get_or_create(sha256="a" * 64, content=url)
    parts = [{"type": "image_url", "image_url": {"url": {"blob": blob.pk}}} for _image in range(images)]
    said = add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Look.", parent=dialog.current_leaf)
    said.parts = {"wire": {"content": [{"type": "text", "text": "Look."}, *parts]}}
    said.save()
    dialog.save()


def at_most(dialog: Dialog) -> int | None:
    return Sizing(present_context(dialog_to_drive(dialog.pk)), []).at_most


def learn_images(llm: LLM, *, each: int, reports: int = 3) -> None:
    for turn in range(1, reports + 1):
        raw = RawEstimate(text=2000, images=768 * turn, pictures=turn)
        learn_from_usage(llm=llm, estimate=RequestEstimate(tokens=raw.tokens, raw=raw), reported=2000 + each * turn)


def test_without_an_estimate_nobody_knows_how_large_a_picture_is_of_which_nothing_was_reported(dialog: Dialog) -> None:
    calibrate(dialog.llm)
    show(dialog, images=1, url=png(100, 100))

    assert at_most(dialog) is None


def test_once_reports_have_taught_what_images_cost_they_are_bounded_without_an_estimate(
    dialog: Dialog, llm: LLM
) -> None:
    learn_images(llm, each=3000)
    before = at_most(dialog) or 0
    show(dialog, images=3, url=png(100, 100))

    bound = at_most(dialog) or 0

    assert 2 * 8_800 < bound - before < 2 * 9_300
    assert bound > guessed(dialog).tokens


def test_how_large_a_sound_is_bytes_never_say(dialog: Dialog, llm: LLM) -> None:
    learn_images(llm, each=3000)
    show(dialog, images=1, url=png(100, 100))
    said = dialog.messages.get()
    said.parts["wire"]["content"].append({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}})
    said.save()

    assert at_most(dialog) is None


def test_images_are_counted_by_the_models_family_and_their_size(dialog: Dialog, llm: LLM) -> None:
    llm.model_id = "claude-sonnet-4-5"
    llm.save()
    before = guessed(dialog_to_drive(dialog.pk)).tokens

    show(dialog, images=2, url=png(1000, 900))

    assert guessed(dialog_to_drive(dialog.pk)).media.tokens == 2400
    assert guessed(dialog_to_drive(dialog.pk)).tokens > before + 2400


def test_what_reports_taught_of_images_is_in_the_estimate_and_in_what_compaction_counts(
    dialog: Dialog, llm: LLM
) -> None:
    show(dialog, images=3, url=png(100, 100))
    learn_images(llm, each=3000)
    context, counter = present_context(dialog_to_drive(dialog.pk)), counter_of(llm)

    units = Kit(counter=counter).counted(units_of(context))

    assert 8800 < guessed(dialog).tokens < 9500
    assert 8800 < sum(unit.image_tokens for unit in units) < 9300


def test_what_is_predicted_of_images_can_be_taken_back_to_what_was_counted(dialog: Dialog, llm: LLM) -> None:
    show(dialog, images=2, url=png(100, 100))
    calibrate(llm)
    found = guessed(dialog)

    told = estimate_of(found, llm, [], counter_of(llm))

    assert (told.raw.images, told.raw.pictures) == (1536, 2)
    assert told.raw.tokens == told.tokens == found.tokens


def test_of_an_unknown_model_the_margin_is_a_part_of_its_own(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=6)

    cautious = guessed(dialog)
    calibrate(llm)
    sure = guessed(dialog)

    assert sure.margin == 0 < cautious.margin
    assert cautious.tokens == sum(cautious.parts.values())
    assert {name: size for name, size in cautious.parts.items() if name != "margin"} == {
        name: size for name, size in sure.parts.items() if name != "margin"
    }


def test_the_margin_is_what_compaction_reckons_with(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=6)
    context, counter = present_context(dialog_to_drive(dialog.pk)), counter_of(llm)

    units = Kit(counter=counter).counted(units_of(context))

    found = guessed(dialog)
    messages = sum(unit.estimated_tokens or 0 for unit in units if unit.role is not Role.SYSTEM)
    assert messages == pytest.approx(found.messages + found.margin, rel=0.02)


def test_three_reports_take_the_margin_away_and_it_is_no_error_of_theirs(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=6)
    for _report in range(3):
        assert guessed(dialog).margin > 0
        told = estimate_of(guessed(dialog), llm, [], counter_of(llm))
        learn_from_usage(llm=llm, estimate=told, reported=told.raw.tokens)

    llm.refresh_from_db()
    assert guessed(dialog).margin == 0
    assert llm.calibration.known.error_percent < 1


def test_a_known_family_has_no_margin(dialog: Dialog, llm: LLM) -> None:
    llm.model_id = "llama-3.1-8b"
    llm.save()
    a_history(dialog, pairs=2)

    assert guessed(dialog_to_drive(dialog.pk)).margin == 0


def test_messages_that_are_sent_as_one_are_counted_as_one(dialog: Dialog) -> None:
    """Two of a person without an answer between, as a compaction often leaves them."""
    words = ("The train is at 8.", "No, at 9.", "Call Dana.")
    for text in words:
        say(dialog, text)
    apart = guessed(dialog).tokens

    dialog.messages.all().delete()
    say(dialog, "\n\n".join(words))

    assert apart == guessed(dialog).tokens


def say(dialog: Dialog, text: str) -> None:
    dialog.current_leaf = dialog.messages.order_by("-seq").first()
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=text, parent=dialog.current_leaf)
    dialog.save()
