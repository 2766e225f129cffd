"""The command line: Django's, with Dominds' settings. `manage.py` in a clone, `dominds` where it was installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dominds import __version__


def find_everywhere(root: Path) -> None:
    """The processes that this one starts find its code whatever folder they are started in, and nothing that lies there
    hides what is installed."""
    os.environ["PYTHONSAFEPATH"] = "1"
    # What was installed is found by itself; a clone is not.
    if (root / "manage.py").exists():
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    find_everywhere(Path(__file__).parents[1])
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
