"""What became of a course's messages for the model: left out of its view, or shortened in it. Estimates nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dialogs.transcript.model_view import load
from health.models import CompactionRun


class Visibility(StrEnum):
    """How the model sees a message that it does not see as it was said. The archive has it all the same."""

    REMOVED = "removed"
    SHORTENED = "shortened"


def hidden_or_shortened(run: CompactionRun | None, branch: Sequence[int]) -> dict[int, Visibility]:
    """By message id, of a branch given by its ids, oldest first, on which the view of this run holds.

    Tools' results are messages too.
    """
    if run is None:
        return {}
    shortened = {entry.message_id: entry.content is not None for entry in load(run.view)}
    covered = branch[: branch.index(run.leaf_id) + 1]
    found = {pk: Visibility.SHORTENED if shortened.get(pk) else Visibility.REMOVED for pk in covered}
    return {pk: visibility for pk, visibility in found.items() if shortened.get(pk, True)}
