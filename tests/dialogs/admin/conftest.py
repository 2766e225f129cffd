"""Sam, who is staff, at the admin's door; and a script that a provider plays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.http import HttpResponse
from django.test import Client

from dialogs.models import LLM, Provider


@pytest.fixture
def staff(client: Client, sam: User) -> Client:
    client.force_login(sam)
    return client


@pytest.fixture
def playing(provider: Provider, llm: LLM) -> Provider:
    """The scripted provider with a file that lists the LLM `tiny` with a window of 4,096."""
    script = {"models": [{"id": "tiny", "context_length": 4096}], "steps": []}
    Path(settings.DOMINDS_DATA_DIR, provider.base_url).write_text(json.dumps(script))
    return provider


def told(response: HttpResponse) -> list[str]:
    """What the page tells its reader at the top."""
    return [str(message) for message in get_messages(response.wsgi_request)]  # type: ignore[attr-defined]
