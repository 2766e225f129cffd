"""What a real server reports, foretold: llama.cpp with a model of no known family, so it has to be learned."""

from __future__ import annotations

import pytest

from benchmarks import llama, prose
from health.tokens.calibration import Calibrating, Calibration, Uncalibrated, learn
from health.tokens.messages import count_messages

LEARNING = 5


@pytest.mark.stack
def test_after_five_generations_a_real_servers_count_is_foretold_within_two_percent() -> None:
    chat = prose.conversation(prose.ENGLISH, answer=500)[:25]
    calibration: Calibrating = Uncalibrated()

    with llama.server(context=4096) as address:
        for end in range(3, len(chat), 2):
            estimated = count_messages(chat[: end + 1], llama.MODEL)
            reported = llama.prompt_tokens(address, chat[: end + 1])
            calibration = learn(calibration, estimated=estimated, reported=reported)

    assert isinstance(calibration, Calibration)
    assert len(calibration.samples) == 11
    for sample in calibration.samples[LEARNING:]:
        assert sample.foretold == pytest.approx(sample.reported, rel=0.02)
        assert sample.estimated == pytest.approx(sample.reported, rel=0.15)
