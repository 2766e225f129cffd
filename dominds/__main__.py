"""The command line: Django's, with Dominds' settings. `manage.py` in a clone, `dominds` where it was installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dominds import __version__


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    # For the processes that it starts: what lies in the folder that they are started in hides nothing installed.
    if not (Path(__file__).parents[1] / "manage.py").exists():
        os.environ["PYTHONSAFEPATH"] = "1"
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"Dominds {__version__}\n")
        return
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Almost always a wrong variable: the message names it, and a traceback would hide it.
        sys.exit(f"Wrong setting: {error}")


if __name__ == "__main__":
    main()
