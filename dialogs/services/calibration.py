"""What a report teaches about estimates: one more sample for its LLM (DL2)."""

from __future__ import annotations

from django.db import transaction

from dialogs.compacting.estimate import known_from, trusted_ratio
from dialogs.models import LLM
from health.models import LlmCalibration
from health.tokens.calibration import Calibration, learn


@transaction.atomic
def learn_from_usage(*, llm: LLM, foretold: int, reported: int) -> None:
    """`foretold` is the estimate as it was used, `reported` the prompt tokens of the provider's usage."""
    row, _made = LlmCalibration.objects.select_for_update().get_or_create(llm=llm)
    known = known_from(row)
    ratio = trusted_ratio(known) if isinstance(known, Calibration) else 1.0
    after = learn(known, estimated=round(foretold / ratio), reported=reported)
    if isinstance(after, Calibration):
        row.samples = [[one.estimated, one.foretold, one.reported] for one in after.samples]
        row.save(update_fields=["samples", "updated_at"])
