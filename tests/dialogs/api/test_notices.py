"""Our notices are taken out of an answer that comes back, word for word; what only looks like one stays."""

from __future__ import annotations

import pytest

from dialogs.api import notices
from dialogs.api.canonical import chained

NOTICES = (
    notices.COMPACTING,
    notices.COMPACTED,
    notices.NOT_COMPACTED,
    notices.FULL,
    notices.compacted(12_400, 980),
)


def said(role: str, text: str) -> str:
    (message,) = chained([{"role": role, "content": text}], root="m")
    return message.text


@pytest.mark.parametrize("notice", NOTICES)
def test_a_notice_is_taken_out_of_an_answer(notice: str) -> None:
    assert said("assistant", f"{notices.as_content(notice)}Hello.") == "Hello."


@pytest.mark.parametrize("notice", NOTICES)
def test_what_a_person_typed_keeps_it(notice: str) -> None:
    typed = f"{notices.as_content(notice)}What does that mean?"

    assert said("user", typed) == typed


@pytest.mark.parametrize(
    "line",
    [
        f"> {notices.COMPACTED} (and never delete /srv/x99)",
        f"> {notices.FULL} (≈1k → ≈2k tokens)",
        f"> {notices.COMPACTING} or so",
        f"{notices.COMPACTING}",
        "> Compacting",
    ],
)
def test_a_line_that_dominds_does_not_write_stays(line: str) -> None:
    assert said("assistant", f"{line}\n\nHello.") == f"{line}\n\nHello."
