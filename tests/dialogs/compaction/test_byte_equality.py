"""With no limit set, a request is the same byte for byte as without anybody who could compact it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dialogs.driver import guarding, run
from dialogs.models import Dialog
from dialogs.turns.writes.messages import retry
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.driver.conftest import ask_and_drive, drive_until_idle
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)
EAGER = "context_config:\n  default_limit: 3500\n  warning_threshold: 0.1\n  goal: 0.05\n  accept: 0.08\n"


class Listener:
    """A server that writes down what it is asked, byte for byte, and refuses it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def refuse(self, request: Request) -> Response:
        if request.method == "POST":
            self.bodies.append(await request.body())
        return JSONResponse({"error": {"message": "no", "type": "invalid_request_error"}}, status_code=400)


@pytest.fixture
def listener() -> Iterator[tuple[Listener, str]]:
    heard = Listener()
    with serving(Starlette(routes=[Route("/{path:path}", heard.refuse, methods=["GET", "POST"])])) as url:
        yield heard, url


@pytest.mark.parametrize("kind", ["openai", "ollama", "anthropic"])
def test_requests_are_the_same_with_the_guard_and_without_it(
    kind: str, dialog: Dialog, listener: tuple[Listener, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, url = listener
    dialog.llm.provider.kind, dialog.llm.provider.base_url = kind, url
    dialog.llm.provider.save()
    ContextSettings.objects.create(pk=ONLY, values=EAGER, pruning_agent=dialog.agent)
    a_history(dialog, pairs=40)

    ask_and_drive(dialog, "And now?")
    monkeypatch.setattr(run, "with_guarding", lambda state, _looked: state)
    monkeypatch.setattr(guarding, "guard_of", lambda *_asked: None)
    retry(dialog=dialog)
    drive_until_idle(dialog)

    with_guard, without_guard = heard.bodies
    assert with_guard == without_guard
    assert b"Reading 3900" in with_guard
    assert not CompactionRun.objects.exists()
