"""The record of provider calls, written from a checked dialog file: generations, their readings, what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction

from dialogs.models import LLM, Course, Generation, Message
from dialogs.transfer.adding import add
from dialogs.transfer.importing_views import Runs
from dialogs.transfer.laws import judged_by, usage_of
from dialogs.transfer.shape import DialogFile, GenerationEntry, ReadingEntry, SentEntry, UsageEntry
from dialogs.turns.writes.generations import keep_blobs
from health.models import HealthReading
from health.monitor.levels import read


def llm_named(slug: str) -> LLM | None:
    provider, _slash, model_id = slug.partition("/")
    return LLM.objects.filter(provider__name=provider, model_id=model_id).first()


@transaction.atomic
def add_generations(
    file: DialogFile,
    entries: Sequence[GenerationEntry],
    courses: dict[int, Course],
    messages: dict[int, Message],
    runs: Runs,
) -> None:
    """These entries of the file. Texts are kept in the transaction that names them, so that none is dropped before."""
    llms = {name: llm_named(name) for name in {entry.llm for entry in entries}}
    hashes = _keep_texts(file, entries)
    rows = [
        _generation(
            entry, courses[entry.course], messages, llms[entry.llm], _manifest(entry.sent, messages, hashes, runs)
        )
        for entry in entries
    ]
    add(Generation, rows, entries, "started_at")
    judged = [(row, entry, entry.reading) for row, entry in zip(rows, entries, strict=True) if entry.reading]
    verdicts = [_reading(row, entry, reading) for row, entry, reading in judged]
    add(HealthReading, verdicts, [reading for _row, _entry, reading in judged], "read_at")


def _keep_texts(file: DialogFile, entries: Sequence[GenerationEntry]) -> dict[int, str]:
    """Hashes by index. A text that nothing refers to is not kept: nobody would ever erase it."""
    used = {index for entry in entries for index in entry.sent.texts.values()}
    kept = keep_blobs(file.texts[index] for index in used)
    return {index: kept[file.texts[index]] for index in used}


def _manifest(sent: SentEntry, messages: dict[int, Message], hashes: dict[int, str], runs: Runs) -> dict[str, Any]:
    """The list of what was sent, as `turns.writes.generations` writes it."""
    return {
        "messages": [messages[seq].pk for seq in sent.messages],
        "options": sent.options,
        **({"view": runs[sent.view].pk} if sent.view is not None else {}),
        **({"estimated": sent.estimated} if sent.estimated is not None else {}),
        **{key: hashes[index] for key, index in sent.texts.items()},
    }


def _generation(
    entry: GenerationEntry, course: Course, messages: dict[int, Message], llm: LLM | None, manifest: dict[str, Any]
) -> Generation:
    usage = asdict(entry.usage) if isinstance(entry.usage, UsageEntry) else {}
    return Generation(
        dialog=course.dialog,
        course=course,
        number=entry.number,
        turn=entry.turn,
        attempt=entry.attempt,
        llm=llm,
        llm_name=entry.llm,
        prompt_leaf=messages[entry.prompt_leaf],
        message=messages[entry.message] if entry.message is not None else None,
        status=entry.status,
        fencing_token=0,
        manifest=manifest,
        partial_text=entry.partial_text,
        partial_reasoning=entry.partial_reasoning,
        usage_raw=entry.usage_raw,
        finish_reason=entry.finish_reason,
        error_code=entry.error_code,
        error_message=entry.error_message,
        first_token_at=entry.first_token_at,
        finished_at=entry.finished_at,
        **usage,
    )


def _reading(row: Generation, entry: GenerationEntry, reading: ReadingEntry) -> HealthReading:
    verdict = read(usage_of(entry), judged_by(reading))
    return HealthReading(
        generation=row,
        prompt_tokens=verdict.prompt_tokens,
        hard_util=verdict.hard_util,
        optimal_util=verdict.optimal_util,
        **asdict(reading),
    )
