"""How often what is stored is read for one request of a client: counted, as a clock says more of the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.backends.utils import CursorWrapper
from django.db.models import F
from django.db.models.signals import post_init

from dialogs.models import Dialog, Message
from tests.dialogs.api.conftest import Client, Play, assistant, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def read() -> Iterator[Counter[int]]:
    """How often each stored message is read, by its id."""
    seen: Counter[int] = Counter()

    def note(instance: Message, **_: object) -> None:
        seen[instance.pk] += 1

    post_init.connect(note, sender=Message)
    yield seen
    post_init.disconnect(note, sender=Message)


@pytest.mark.parametrize("elsewhere", [0, 1], ids=["answered-here", "answered-elsewhere"])
async def test_an_old_message_is_read_once_at_the_most_to_foresee_the_request_and_to_make_it(
    client_of_alice: Client, play: Play, read: Counter[int], elsewhere: int
) -> None:
    await sync_to_async(play)(*[said(100 * number + 100, f"Answer {number}.") for number in range(4)])
    history = []
    for number in range(3):
        history.append(user(f"Question {number}?"))
        await client_of_alice.ask(*history)
        history.append(assistant(f"Answer {number}."))
    dialog = await Dialog.objects.alatest("created_at")
    first = await Message.objects.filter(dialog=dialog).order_by("seq").values_list("pk", flat=True).afirst()
    await Dialog.objects.aupdate(version=F("version") + elsewhere)
    read.clear()

    await client_of_alice.ask(*history, user("And now?"))

    assert first is not None
    assert read[first] == elsewhere


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the database, by all threads."""
    said: list[str] = []
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        said.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    return said


@pytest.mark.parametrize(("turns", "most"), [(0, 20), (15, 22)], ids=["new", "turns-resent"])
async def test_a_guarded_request_takes_few_statements_however_long_its_history(
    guarded_client: Client, play: Play, statements: list[str], turns: int, most: int
) -> None:
    await sync_to_async(play)(*[said(120, f"Answer {number}.") for number in range(turns + 2)])
    await guarded_client.ask(user("Something else first."))
    history: list[dict[str, Any]] = []
    for number in range(turns):
        await guarded_client.ask(*history, user(f"Question {number}?"))
        history += [user(f"Question {number}?"), assistant(f"Answer {number + 1}.")]
    statements.clear()

    await guarded_client.ask(*history, user("And now?"))

    assert len(statements) <= most
    assert sum('FROM "dialogs_prefixnode"' in one for one in statements) == bool(turns)
    of_a_course = 'FROM "dialogs_message" WHERE "dialogs_message"."course_id" = '
    assert not any(of_a_course in one for one in statements)
