#!/usr/bin/env python
"""Django's command line, with Dominds' settings."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Almost always a wrong variable: the message names it, and a traceback would hide it.
        sys.exit(f"Wrong setting: {error}")


if __name__ == "__main__":
    main()
