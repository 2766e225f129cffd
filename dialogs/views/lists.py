"""The list of dialogs, the list beside a dialog, and the page that begins a new one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.functional import Promise
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from dialogs.forms import NewDialogForm
from dialogs.models import Dialog
from dialogs.selectors.agents import choosable_agents
from dialogs.selectors.dialogs import SHELVES, Shelf, list_dialogs
from dialogs.services.dialogs import create_dialog
from dialogs.views.common import trash_days
from health.selectors import latest_levels

STEP = 30
SIDEBAR_LENGTH = 30
TABS: dict[Shelf, Promise] = {
    "active": gettext_lazy("Active"),
    "clients": gettext_lazy("API"),
    "archived": gettext_lazy("Archived"),
    "trash": gettext_lazy("Trash"),
}


@dataclass(frozen=True, kw_only=True)
class DialogItem:
    """One dialog in a list; `level` is "" before its first reading."""

    dialog: Dialog
    level: str

    @property
    def age(self) -> str:
        """Relative, because the server does not know the reader's time zone."""
        since = self.dialog.active_at
        if timezone.now() - since < timedelta(minutes=1):
            return _("just now")
        return _("%(age)s ago") % {"age": timesince(since, depth=1)}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which part of the list the address asks for. Nonsense is read as the default, never an error."""

    shelf: Shelf
    search: str
    shown: int
    renaming: str

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        shelf = query.get("shelf", "")
        shown = query.get("shown", "")
        return cls(
            shelf=shelf if shelf in SHELVES else "active",
            search=query.get("q", "").strip()[:200],
            shown=max(int(shown), STEP) if shown.isascii() and shown.isdigit() and len(shown) < 7 else STEP,
            renaming=query.get("rename", ""),
        )

    def url(self, **changes: Any) -> str:
        """This list's address, with some of it changed; what is the default is left out."""
        values = {"shelf": self.shelf, "q": self.search, "shown": self.shown} | changes
        defaults = {"shelf": "active", "q": "", "shown": STEP}
        query = {key: value for key, value in values.items() if value != defaults.get(key)}
        return reverse("dialog_list") + (f"?{urlencode(query)}" if query else "")


@never_cache
@require_GET
def dialog_list(request: HttpRequest) -> HttpResponse:
    """The page, or for htmx the list alone."""
    asked = Asked.of(request.GET)
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "dialogs/_list.html" if is_fragment else "dialogs/list.html"
    context = _list_context(request.user, asked) | {"swap_messages": is_fragment}
    response = render(request, template, context)
    # Both answers share one address: a cache must not mix them up.
    patch_vary_headers(response, ["HX-Request"])
    if is_fragment:
        # Reloading shows the same list again, whichever action led to it.
        response["HX-Replace-Url"] = asked.url()
    return response


def _list_context(user: User | AnonymousUser, asked: Asked) -> dict[str, Any]:
    found = list(list_dialogs(user=cast("User", user), state=asked.shelf, search=asked.search)[: asked.shown + 1])
    return {
        "asked": asked,
        "tabs": [(shelf, label, asked.url(shelf=shelf, shown=STEP)) for shelf, label in TABS.items()],
        "items": _items(found[: asked.shown]),
        "trash_days": trash_days(),
        "list_url": asked.url(),
        "unsearched_url": asked.url(q="", shown=STEP),
        "more_url": asked.url(shown=asked.shown + STEP) if len(found) > asked.shown else "",
    }


def _items(dialogs: list[Dialog]) -> list[DialogItem]:
    levels = latest_levels([dialog.pk for dialog in dialogs])
    return [DialogItem(dialog=dialog, level=levels.get(dialog.pk, "")) for dialog in dialogs]


def sidebar(user: User) -> list[DialogItem]:
    """The active dialogs that were used last, for `_sidebar.html` beside a dialog."""
    return _items(list(list_dialogs(user=user)[:SIDEBAR_LENGTH]))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Begin a dialog. A POST that names no agent begins at once when there is only one to choose."""
    if request.method != "POST":
        return _chooser(request)
    data = request.POST
    if "agent" not in data:
        slugs = list(choosable_agents().values_list("slug", flat=True)[:2])
        if len(slugs) != 1:
            return redirect("dialog_new")
        data = QueryDict(urlencode({"agent": slugs[0]}))
    form = NewDialogForm(data)
    if not form.is_valid():
        for error in form.errors["agent"]:
            messages.error(request, str(error))
        return redirect("dialog_new")
    dialog = create_dialog(owner=cast("User", request.user), agent=form.cleaned_data["agent"])
    return redirect("dialog", dialog_id=dialog.pk)


def _chooser(request: HttpRequest) -> HttpResponse:
    return render(request, "dialogs/new.html", {"agents": choosable_agents()})
