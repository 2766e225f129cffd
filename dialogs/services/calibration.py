"""What a report teaches about estimates: one more sample for its LLM (DL2)."""

from __future__ import annotations

from django.db import transaction

from dialogs.compacting.estimate import Foretold
from dialogs.models import LLM
from health.models import LlmCalibration
from health.tokens.calibration import Calibration, learn


@transaction.atomic
def learn_from_usage(*, llm: LLM, foretold: Foretold, reported: int) -> None:
    """`reported` is the prompt tokens of the provider's usage for the request that was foretold.

    The margin is no part of what was thought likely, so it is no error of it.
    """
    row, _made = LlmCalibration.objects.select_for_update().get_or_create(llm=llm)
    after = learn(
        row.known_of(foretold.counter), foretold.raw, reported=reported, foretold=foretold.tokens - foretold.margin
    )
    if isinstance(after, Calibration):
        row.known, row.counter = after, foretold.counter
        row.save(update_fields=["samples", "counter", "updated_at"])
    # Who counts with this LLM again counts with what was learned.
    llm.calibration = row
