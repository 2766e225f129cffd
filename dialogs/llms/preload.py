"""Loads in a thread, in advance, what would take a second or two at the first answer: a provider's SDK, a vocabulary.
If that fails, the first answer loads it.
"""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from threading import Timer

from django.conf import settings
from django.db import connection

from dialogs.models import LLM, ApiKey
from dialogs.providers.registry import load
from health.tokens.counters import counter_named

# The delay, so that the first page comes before.
AFTER_SECONDS = 3.0
# A vocabulary takes up to 50 MB: those of the agents that are listed first.
MOST_VOCABULARIES = 2

logger = logging.getLogger(__name__)


def preload_soon(*, for_clients: bool = False) -> None:
    """Start loading in a thread. `for_clients`: this process answers only clients of `/v1`."""
    loading = Timer(AFTER_SECONDS, _try, [for_clients])
    loading.daemon = True
    loading.start()


def _try(for_clients: bool) -> None:
    try:
        if not for_clients or ApiKey.objects.exists():
            load_what_answers_need()
    except Exception:
        logger.warning("What answers need is loaded with the first answer", exc_info=True)
    finally:
        connection.close()


def load_what_answers_need() -> None:
    llms = list(LLM.objects.filter(agents__is_direct=False).select_related("provider").order_by("agents__pk"))
    for kind in {llm.provider.kind for llm in llms}:
        load(kind)
    named = dict.fromkeys((llm.tokenizer, llm.model_id) for llm in llms)
    for tokenizer, model in list(named)[:MOST_VOCABULARIES]:
        counter_named(tokenizer, model=model, data=Path(settings.DOMINDS_DATA_DIR))
    # Loaded modules stay in memory: the garbage collector need not scan them while answers are made.
    gc.collect()
    gc.freeze()
