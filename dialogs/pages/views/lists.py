"""The list of dialogs, the list beside a dialog, and the page that begins a new one."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import BigIntegerField, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from dialogs.llms.reads import choosable_agents
from dialogs.models import Agent, Dialog, Message
from dialogs.pages.reads.dashboard import (
    DOING,
    LEVELS,
    DashboardRow,
    DialogOverview,
    choices,
    overviews,
    overviews_on,
    shown,
    strip,
)
from dialogs.pages.writes import create_dialog
from dialogs.transcript.reads.dialogs import SHELVES, Shelf, list_dialogs, meters_of, newest_said, on_shelf, with_newest
from dialogs.transcript.search import query_words, snippet
from dialogs.transcript.views import key_in, person_of, trash_days
from dominds.prepared import prepared
from health.selectors import Meter

STEP = 50
SIDEBAR_LENGTH = 30
TABS: dict[Shelf, Promise] = {
    "active": gettext_lazy("Active"),
    "clients": gettext_lazy("API"),
    "archived": gettext_lazy("Archived"),
    "trash": gettext_lazy("Trash"),
}
# On the other shelves dialogs are ordered by time alone, the newest first.
LIVELY: tuple[Shelf, ...] = ("active", "clients")
FILTERS = ("level", "doing", "agent", "llm", "client")


@dataclass(frozen=True, kw_only=True)
class DialogItem(DashboardRow):
    # The newest message that was found. A later one changes `key` anyway.
    found: Message | None
    searched: str

    @property
    def snippet(self) -> str:
        return snippet(self.found.content, query_words(self.searched)) if self.found else ""


@dataclass(frozen=True, kw_only=True)
class SidebarItem:
    dialog: Dialog
    meter: Meter

    @property
    def level(self) -> str:
        return "" if self.meter.stale == "none_yet" else self.meter.level


@dataclass(frozen=True)
class StateCount:
    """One count above the list: how many dialogs have a level or state."""

    kind: str
    name: str
    count: int
    url: str
    is_on: bool


@dataclass(frozen=True, kw_only=True)
class SelectFilter:
    name: str
    label: str
    every: str
    options: list[tuple[int, str]]
    chosen: int


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """The filters in the list's address. An invalid value is read as the default."""

    shelf: Shelf
    search: str
    shown: int
    renaming: str
    level: str = ""
    doing: str = ""
    agent: int = 0
    llm: int = 0
    client: int = 0

    @classmethod
    def of(cls, query: QueryDict) -> ListQuery:
        shelf, shown = query.get("shelf", ""), query.get("shown", "")
        level, doing = query.get("level", ""), query.get("doing", "")
        return cls(
            shelf=shelf if shelf in SHELVES else "active",
            search=query.get("q", "").strip()[:200],
            shown=max(int(shown), STEP) if shown.isascii() and shown.isdigit() and len(shown) < 7 else STEP,
            renaming=query.get("rename", ""),
            level=level if level in LEVELS else "",
            doing=doing if doing in DOING else "",
            **{name: key_in(query, name) for name in ("agent", "llm", "client")},
        )

    @property
    def is_filtered(self) -> bool:
        return any(getattr(self, name) for name in FILTERS)

    def takes(self, one: DialogOverview) -> bool:
        """Does this dialog match the filter?"""
        found = {"level": one.level, "doing": one.doing, "agent": one.agent[0], "llm": one.llm[0]}
        found["client"] = one.client[0] if one.client else 0
        return all(found[name] == asked for name in FILTERS if (asked := getattr(self, name)))

    def url(self, **changes: Any) -> str:
        """This list's address with some values changed, without defaults."""
        values = {"shelf": self.shelf, "q": self.search, "shown": self.shown}
        values |= {name: getattr(self, name) for name in FILTERS}
        defaults = {"shelf": "active", "q": "", "shown": STEP}
        query = {key: value for key, value in (values | changes).items() if value != defaults.get(key) and value}
        return reverse("dialog_list") + (f"?{urlencode(query)}" if query else "")


@never_cache
@require_GET
def dialog_list(request: HttpRequest) -> HttpResponse:
    """The page, or for htmx the list alone."""
    asked = ListQuery.of(request.GET)
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "dialogs/_list.html" if is_fragment else "dialogs/list.html"
    context = list_context(request.user, asked) | {"swap_messages": is_fragment}
    response = render(request, template, context)
    # Page and fragment have one address: a cache must not mix them up.
    patch_vary_headers(response, ["HX-Request"])
    if is_fragment:
        # Reloading shows the same list again, whichever action led to it.
        response["HX-Replace-Url"] = asked.url()
    return response


def list_context(user: User | AnonymousUser, asked: ListQuery) -> dict[str, Any]:
    """The list's template context. `state` changes whenever the list would."""
    person, newest_first = cast("User", user), asked.shelf not in LIVELY
    if asked.search:
        found = list_dialogs(user=person, state=asked.shelf, search=asked.search)
        every = overviews(found, newest_first=newest_first)
    else:
        every = overviews_on(asked.shelf, person.pk, newest_first=newest_first)
    left = [one for one in every if asked.takes(one)]
    items = _items(left[: asked.shown], asked.search)
    counted = _strip(every, asked) if asked.shelf in LIVELY else []
    return {
        "asked": asked,
        "tabs": [(shelf, label, asked.url(shelf=shelf, shown=STEP, **NO_FILTER)) for shelf, label in TABS.items()],
        "items": items,
        "every": every,
        "strip": counted,
        "choices": _choices(every, asked),
        "trash_days": trash_days(),
        "list_url": asked.url(),
        "unsearched_url": asked.url(q="", shown=STEP),
        "unfiltered_url": asked.url(shown=STEP, **NO_FILTER),
        "more_url": asked.url(shown=asked.shown + STEP) if len(left) > asked.shown else "",
        "state": state_of(items, counted),
        "socket_url": _socket_url(asked, items, counted),
    }


def _items(some: list[DialogOverview], searched: str) -> list[DialogItem]:
    said = newest_said([one.pk for one in some], searched) if searched else {}
    return [DialogItem(**vars(row), found=said.get(row.dialog.pk), searched=searched) for row in shown(some)]


NO_FILTER = dict.fromkeys(FILTERS, "")


def state_of(items: list[DialogItem], counted: list[StateCount]) -> str:
    said = "".join((*(f"{item.dialog.pk}{item.key}" for item in items), repr(counted)))
    return sha256(said.encode()).hexdigest()[:16]


def _socket_url(asked: ListQuery, items: list[DialogItem], counted: list[StateCount]) -> str:
    """The socket's address, with the filters, the language, and the state that the page shows."""
    query = asked.url().partition("?")[2]
    more = {"lang": get_language() or "", "state": state_of(items, counted)}
    if asked.renaming:
        more["rename"] = asked.renaming
    return f"/ws/dialogs/?{query}&{urlencode(more)}"


def _strip(every: list[DialogOverview], asked: ListQuery) -> list[StateCount]:
    """The counts above the list, each a link that sets or clears its filter."""
    return [
        StateCount(kind, name, count, url=asked.url(shown=STEP, **{kind: "" if is_on else name}), is_on=is_on)
        for kind, name, count in strip(every)
        for is_on in (getattr(asked, kind) == name,)
    ]


def _choices(every: list[DialogOverview], asked: ListQuery) -> list[SelectFilter]:
    """The select filters; those with nothing to choose between are left out."""
    labels = {"agent": _("Agent"), "llm": _("LLM"), "client": _("Client")}
    every_of = {"agent": _("All agents"), "llm": _("All LLMs"), "client": _("All clients and your own")}
    return [
        SelectFilter(name=name, label=labels[name], every=every_of[name], options=options, chosen=getattr(asked, name))
        for name, options in choices(every).items()
        if len(options) > 1 or (name == "client" and options) or getattr(asked, name)
    ]


def sidebar(user: User) -> list[SidebarItem]:
    """The active dialogs that were used last, for `_sidebar.html` beside a dialog."""
    dialogs = _last_used(user.pk)
    meters = meters_of(dialogs)
    return [SidebarItem(dialog=dialog, meter=meters[dialog.pk]) for dialog in dialogs]


@prepared(BigIntegerField())
def _last_used(owner_id: Any) -> QuerySet[Dialog]:
    return with_newest(on_shelf(owner_id, "active"))[:SIDEBAR_LENGTH]


class NewDialogForm(forms.Form):
    """The agent by its slug."""

    agent: forms.ModelChoiceField[Agent] = forms.ModelChoiceField(
        Agent.objects.none(),
        to_field_name="slug",
        error_messages={"invalid_choice": gettext_lazy("That agent is not there any more. Choose another.")},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent"].queryset = choosable_agents()  # type: ignore[attr-defined]


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
    dialog = create_dialog(owner=person_of(request), agent=form.cleaned_data["agent"])
    return redirect("dialog", dialog_id=dialog.pk)


def _chooser(request: HttpRequest) -> HttpResponse:
    return render(request, "dialogs/new.html", {"agents": choosable_agents()})
