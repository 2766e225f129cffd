"""The command line: Django's, with Dominds' settings. `manage.py` in a clone, `dominds` where it was installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dominds import __version__


def find_everywhere(root: Path) -> None:
    """Let child processes import this code from any working directory, and nothing from the working directory."""
    os.environ["PYTHONSAFEPATH"] = "1"
    # An installed package is found anyway, a clone is not.
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
    from django.db import InterfaceError, OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Usually a wrong variable. The message names it; a traceback would hide that.
        sys.exit(f"Wrong setting: {error}")
    except (InterfaceError, OperationalError, ProgrammingError) as error:
        if "--traceback" in sys.argv or not (help_for := _what_to_do(error)):
            raise
        sys.exit(f"The database cannot be used: {str(error).strip().splitlines()[0]}. {help_for}")


def _what_to_do(error: Exception) -> str:
    from django.conf import settings
    from django.db import ProgrammingError

    from dialogs.common.errors import is_full

    if "no such table" in str(error) or "does not exist" in str(error):
        return f"Is it the right one (DATABASE_URL)? `{settings.COMMAND} migrate` makes its tables."
    if isinstance(error, ProgrammingError):
        return ""
    if is_full(error):
        return "Free some space, then try again."
    return f"See that it runs and that DATABASE_URL is right, then try again: `{settings.COMMAND} doctor` looks at it."


if __name__ == "__main__":
    main()
