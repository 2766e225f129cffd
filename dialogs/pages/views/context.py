"""What the shell around every page needs: theme, languages, version, who may open the admin.

Touches no database, so that error pages can be drawn when there is none.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import get_language, get_language_info, pgettext_lazy

from dominds import __version__

THEME_COOKIE = "dominds_theme"
THEMES: dict[str, Promise] = {
    "auto": pgettext_lazy("theme", "Like the system"),
    "light": pgettext_lazy("theme", "Light"),
    "dark": pgettext_lazy("theme", "Dark"),
}


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "auto"


def site(request: HttpRequest) -> dict[str, Any]:
    """The context processor named in settings."""
    return {
        "theme": theme_of(request),
        "themes": THEMES,
        "language": get_language() or settings.LANGUAGE_CODE,
        # In each language's own name: who cannot read the page must find the way out of it.
        "languages": [(code, get_language_info(code)["name_local"]) for code, _name in settings.LANGUAGES],
        "version": __version__,
        # How commands are called on this installation.
        "program": settings.COMMAND,
        "can_admin": SimpleLazyObject(lambda: _can_admin(request)),
    }


def _can_admin(request: HttpRequest) -> bool:
    """Asked only where the template asks: it reads the session, hence the database."""
    user = getattr(request, "user", None)
    return bool(user and user.is_active and user.is_staff)
