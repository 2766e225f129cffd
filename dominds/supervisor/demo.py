"""The demo: whether the embedded LLM is wanted, on which port, and its rows."""

from __future__ import annotations

import sys

from django.conf import settings

from dominds.supervisor import llama_server, probes
from dominds.supervisor.children import Child

HOST = "127.0.0.1"


def provider_in_environment() -> bool:
    """Somebody gave a key or a file of models: they have a model of their own."""
    from dialogs.selectors.providers import providers_ready_by_environment

    return settings.DOMINDS_LLM_FILE_REQUIRED or bool(providers_ready_by_environment())


def choose_port() -> int:
    """The configured port, else a free one: two installations on one machine both have their demo."""
    taken = probes.port_problem(HOST, settings.DOMINDS_DEMO_PORT)
    return probes.free_port() if taken else settings.DOMINDS_DEMO_PORT


def install(port: int) -> None:
    from dialogs.services.demo import install_demo

    install_demo(
        base_url=f"http://{HOST}:{port}",
        model_id=llama_server.MODEL_ID,
        context_window=settings.DOMINDS_DEMO_CONTEXT,
    )


def retire() -> None:
    from dialogs.services.demo import retire_demo

    retire_demo()


def child(port: int) -> Child:
    module = "dominds.supervisor.llama_server"
    return Child(
        name="demo",
        command=(
            sys.executable,
            "-m",
            module,
            "--port",
            str(port),
            "--context",
            str(settings.DOMINDS_DEMO_CONTEXT),
        ),
        answers=lambda: probes.page_answers(f"http://{HOST}:{port}/health"),
    )
