"""The margin of models that nobody knows, against the vocabularies that they may have."""

from __future__ import annotations

import hashlib

import pytest

from health.compaction.terms.ports import Grade
from health.tokens import corrected
from health.tokens.calibration import Correction
from health.tokens.corrected import MARGIN, MARGIN_ALONE, CautiousCounter, CorrectedCounter, correction_of, likely_of
from health.tokens.counters import ROUGH, counter_for

UNKNOWN = counter_for("a-name-of-no-family")
TEXTS = {
    "prose": "The pump beside the valve shows less pressure than was expected after the check. " * 20,
    "code": "def taken(units: Iterable[Unit], *, most: int = 5) -> list[Unit]:\n    return [*units][:most]\n" * 10,
    "logs": "2031-04-07T12:33:01.553Z ERROR [worker-7] 0x7ffe3a2b1c40 timeout after 30000ms\n" * 20,
    "hex": "\n".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(30)),
    "table": "\n".join(f"{number * 7919},{number * 104_729},{number / 7:.4f}" for number in range(99)),
    "korean": "오늘 오후 보일러실의 펌프와 밸브를 점검했고 압력계의 수치가 낮다는 것을 발견했습니다. " * 20,
    "chinese": "今天下午我们检查了锅炉房的水泵和阀门，发现压力表的读数明显偏低，已请夜班人员更换。" * 20,
}


def cautious(correction: Correction | None = None) -> CautiousCounter:
    return CautiousCounter(CorrectedCounter(UNKNOWN, correction) if correction else UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("model", ["llama-2-7b", "mistral-7b-instruct-v0.3", "mistral-nemo", "llama-3.1-8b", "gpt-4o"])
@pytest.mark.parametrize("kind", TEXTS)
def test_with_the_margin_no_text_is_counted_too_short_for_any_known_vocabulary(kind: str, model: str) -> None:
    (real,), (told,) = counter_for(model).count([TEXTS[kind]]), cautious().count([TEXTS[kind]])

    assert told >= real


def test_prose_gets_a_quarter_more() -> None:
    assert cautious().count([TEXTS["prose"]])[0] == pytest.approx(MARGIN * UNKNOWN.count([TEXTS["prose"]])[0], rel=0.01)


def test_without_a_second_vocabulary_the_margin_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrected, "counter_for", lambda model: ROUGH)
    text = TEXTS["prose"]

    assert cautious().count([text])[0] == pytest.approx(MARGIN_ALONE * UNKNOWN.count([text])[0], abs=1)


def test_a_report_above_the_margin_is_believed() -> None:
    text = TEXTS["prose"]

    assert cautious(Correction(ratio=2.0)).count([text])[0] == 2 * UNKNOWN.count([text])[0]


def test_it_says_what_is_likely_without_the_margin() -> None:
    known = Correction(ratio=1.05)
    counter = cautious(known)

    assert likely_of(counter) == CorrectedCounter(UNKNOWN, known)
    assert correction_of(counter) == known
    assert (counter.name, counter.grade, counter.per_message) == ("cl100k_base × 1.05", Grade.APPROXIMATE, 4)
