"""Two hundred turns with a window that holds ten of them: nothing overflows, and what was said once is still sent.

The ordinary run counts with a stand-in LM Studio, which cuts the middle of whatever is too long; `make test-long` has
the real tiny model behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dialogs.context.border import chat_request
from dialogs.context.estimate import present_context
from dialogs.models import Dialog, Generation
from health.models import CompactionRun
from tests.dialogs.compacting_builders import long_text
from tests.dialogs.driver.conftest import ask_and_drive
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.real import real_llm
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = {
    3: "The invoice must always go to billing@harbour.example, never to Bo.",
    9: "We decided to keep the orders in PostgreSQL.",
    15: "I prefer short answers, at most three sentences.",
}
KEPT = ("billing@harbour.example", "orders in PostgreSQL", "short answers")


@pytest.fixture
def real_server() -> Iterator[str]:
    with real_llm(context=4096) as url:
        yield url


def talk(dialog: Dialog, standin: LMStudioStandin, *, turns: int) -> None:
    with serving(standin.app()) as url:
        llm = dialog.llm
        llm.provider.kind, llm.provider.base_url = "lmstudio", url
        llm.provider.save()
        llm.context_length, llm.optimal_max_tokens, llm.model_id = None, None, standin.model
        llm.compaction = "automatic"
        llm.save()
        dialog.agent.max_output_tokens = 48
        dialog.agent.save()
        for number in range(turns):
            ask_and_drive(dialog, FACTS.get(number) or f"Turn {number}. {long_text(number, 3)}")


def nothing_was_lost(dialog: Dialog, standin: LMStudioStandin, *, turns: int, compactions: int) -> None:
    dialog.refresh_from_db()
    request = "\n".join(message.content for message in chat_request(present_context(dialog)).messages)
    failed = list(Generation.objects.exclude(status="finished").values_list("status", "error_code", "error_message"))
    applied = CompactionRun.objects.filter(status=CompactionRun.Status.APPLIED).count()

    assert failed == []
    assert (standin.cuts, standin.refused) == (0, 0)
    assert standin.largest <= standin.context
    assert dialog.messages.filter(role="user", origin="typed").count() == turns
    assert applied >= compactions
    assert [fact for fact in KEPT if fact not in request] == []


def test_a_long_talk_never_overflows_and_forgets_nothing_that_was_stated(dialog: Dialog) -> None:
    standin = LMStudioStandin(context=2600, cut_middle=True, words=40)

    talk(dialog, standin, turns=40)

    nothing_was_lost(dialog, standin, turns=40, compactions=5)


@pytest.mark.long
def test_two_hundred_turns_with_a_real_model_never_overflow(dialog: Dialog, real_server: str) -> None:
    standin = LMStudioStandin(context=2048, cut_middle=True, front=real_server, model="smollm2-135m")

    talk(dialog, standin, turns=200)

    nothing_was_lost(dialog, standin, turns=200, compactions=5)
