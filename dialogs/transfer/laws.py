"""Laws of a dialog file as a whole: what refers to something finds it, and every level follows from its numbers."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from dialogs.transfer.place import Place
from dialogs.transfer.shape import DialogFile, GenerationEntry, ReadingEntry, UsageEntry
from health.monitor.levels import Configured, read
from health.monitor.usage import Usage, UsageUnavailable


def check_whole(file: DialogFile) -> None:
    courses = _once((entry.number for entry in file.courses), "courses", "number")
    seqs = _once((entry.seq for entry in file.messages), "messages", "seq")
    if not courses:
        Place(None, "courses").refuse(_("must name at least one course."))
    if file.current_leaf is not None:
        _find(file.current_leaf, seqs, "current_leaf")
    for index, entry in enumerate(file.messages):
        _check_parent(entry.seq, entry.parent, seqs, f"messages[{index}].parent")
        _find(entry.course, courses, f"messages[{index}].course")
    _once(((entry.course, entry.number) for entry in file.generations), "generations", "number")
    _once((entry.message for entry in file.generations if entry.message is not None), "generations", "message")
    for index, generation in enumerate(file.generations):
        _check_generation(generation, courses, seqs, f"generations[{index}]")


def _once(values: Iterable[object], path: str, field: str) -> set[object]:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            Place(None, path).refuse(_("has the same “%(field)s” twice: %(value)s.") % {"field": field, "value": value})
        seen.add(value)
    return seen


def _find(number: int, known: set[object], path: str) -> None:
    if number not in known:
        Place(None, path).refuse(_("refers to %(number)s, which the file does not have.") % {"number": number})


def _check_parent(seq: int, parent: int | None, seqs: set[object], path: str) -> None:
    if parent is None:
        return
    _find(parent, seqs, path)
    if parent >= seq:
        Place(None, path).refuse(_("must come before its child."))


def _check_generation(entry: GenerationEntry, courses: set[object], seqs: set[object], path: str) -> None:
    _find(entry.course, courses, f"{path}.course")
    _find(entry.prompt_leaf, seqs, f"{path}.prompt_leaf")
    if entry.message is not None:
        _find(entry.message, seqs, f"{path}.message")
    for seq in entry.sent.messages:
        _find(seq, seqs, f"{path}.sent.messages")
    if entry.reading is not None and not _follows(entry.reading, usage_of(entry)):
        Place(None, f"{path}.reading").refuse(_("does not follow from the usage and the ceilings beside it."))


def usage_of(entry: GenerationEntry) -> Usage | UsageUnavailable:
    if not isinstance(entry.usage, UsageEntry):
        return UsageUnavailable()
    return Usage(
        prompt_tokens=entry.usage.prompt_tokens,
        completion_tokens=entry.usage.completion_tokens,
        total_tokens=entry.usage.total_tokens,
        cached_tokens=entry.usage.cached_tokens,
    )


def judged_by(entry: ReadingEntry) -> Configured:
    """The limits in force when the reading was made."""
    return Configured(
        context_length=entry.context_window,
        optimal_max_tokens=entry.optimal_max_tokens,
        critical_max_tokens=entry.critical_max_tokens,
    )


def _follows(entry: ReadingEntry, usage: Usage | UsageUnavailable) -> bool:
    verdict = read(usage, judged_by(entry))
    return (verdict.level, verdict.reason) == (entry.level, entry.reason)
