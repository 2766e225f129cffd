"""`manage.py up`: run everything on this machine until Ctrl-C. The work is in `dominds.supervisor.run`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from dominds.supervisor.lock import CannotStart
from dominds.supervisor.run import Options, up


def port(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


class Command(BaseCommand):
    help = "Runs the web server, the workers, the embedded Redis-compatible server and the demo model until Ctrl-C."
    # `up` runs the checks itself, once it knows that the database answers.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.DOMINDS_HOST)
        parser.add_argument("--port", type=port, default=settings.DOMINDS_PORT)
        parser.add_argument("--no-demo", action="store_true", help="do not start the demo model")
        parser.add_argument("--debug", action="store_true", help="log more, as DOMINDS_LOG_LEVEL=DEBUG does")
        half = parser.add_mutually_exclusive_group()
        half.add_argument("--web-only", action="store_true", help="no workers: they run elsewhere")
        half.add_argument("--worker-only", action="store_true", help="no web server: it runs elsewhere")

    def handle(self, **options: Any) -> None:
        if options["debug"]:
            # The processes that `up` starts read their settings from the environment.
            os.environ["DOMINDS_LOG_LEVEL"] = "DEBUG"
        chosen = Options(
            host=options["host"],
            port=options["port"],
            demo=not options["no_demo"],
            web=not options["worker_only"],
            workers=not options["web_only"],
        )
        try:
            up(chosen)
        except CannotStart as error:
            self.stderr.write(str(error))
            sys.exit(1)
