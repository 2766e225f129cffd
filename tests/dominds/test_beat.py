"""The hourly beat under a real `manage.py up`: the sweeper wakes it, a worker keeps it, Redis holds its moment."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.migrated import migrated
from tests.stack import Stack, manage, running_stack, settings_of

pytestmark = pytest.mark.stack

# The moment of the last beat, and how long it holds off the next.
LAST_BEAT = """
from django.conf import settings
from redis import Redis
from dialogs.sweeper import KEY
redis = Redis.from_url(settings.REDIS_URL)
print((redis.get(KEY) or b"").decode(), redis.ttl(KEY))
"""
TROUBLE = """
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.models import LLM, Agent, Course, Dialog, Provider
from health.models import ContextEvent
from tests.dialogs.compacting_builders import a_history, guard
provider = Provider.objects.create(name="quick", kind="openai", base_url="http://127.0.0.1:9/v1")
llm = LLM.objects.create(provider=provider, model_id="small", context_length=32768)
agent = Agent.objects.create(name="Writer", slug="writer", llm=llm)
owner = User.objects.create_user("alice")
dialog = Dialog.objects.create(owner=owner, agent=agent, llm=llm, active_at=timezone.now())
Course.objects.create(dialog=dialog, number=1)
guard(dialog)
a_history(dialog, pairs=12, sentences=60)
ContextEvent.objects.bulk_create(ContextEvent(code="OVER_HIT", agent=agent, llm=llm) for _each in range(5))
"""
PROPOSED = "from health.models import Proposal; print(*Proposal.objects.values_list('agent__slug', 'status'))"


def last_beat(stack: Stack) -> tuple[str, int]:
    said = stack.shell(LAST_BEAT).split()
    return (said[0] if len(said) > 1 else ""), int(said[-1])


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Started after a night that everything was off, in which a beat was missed: there is something to propose."""
    data_dir = tmp_path_factory.mktemp("beat")
    shutil.copy(migrated(), data_dir)
    manage("shell", "--command", TROUBLE, environment=settings_of(data_dir))
    with running_stack(data_dir, "--no-demo") as found:
        yield found


def test_a_beat_that_was_missed_is_caught_up_soon_after_the_start_and_proposes_what_there_is(stack: Stack) -> None:
    stack.wait_until(lambda: bool(last_beat(stack)[0]))
    _moment, seconds_left = last_beat(stack)
    assert 3000 < seconds_left <= 3600

    stack.wait_until(lambda: bool(stack.shell(PROPOSED)))
    assert stack.shell(PROPOSED) == "('writer', 'open')"
