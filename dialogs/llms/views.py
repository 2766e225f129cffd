"""The guided form that connects a server, for staff who may add providers."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dialogs.llms.connecting import FIRST, OFFERS, ConnectForm, ServerAnswer, ServerPreset, add, ask_server
from dialogs.llms.writes.providers import InvalidProvider

MOST_CHARS = 500
may_connect = permission_required("dialogs.add_provider", raise_exception=True)


@may_connect
@never_cache
@sensitive_post_parameters("key")
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """The form; a POST asks the server what it serves, and changes nothing."""
    offer = _offer(request)
    if request.method != "POST":
        # A link may bring an address: the form is filled, nothing is asked yet.
        return _page(request, offer, ConnectForm(offer=offer, address=request.GET.get("address", "")[:MOST_CHARS]))
    form = ConnectForm(request.POST, offer=offer)
    if not form.is_valid():
        return _page(request, offer, form)
    return _page(request, offer, form, found=ask_server(form.entered()))


@may_connect
@sensitive_post_parameters("key")
@require_POST
def connect_add(request: HttpRequest) -> HttpResponse:
    """Add one model; for htmx its row, with somebody to talk to in it."""
    offer = _offer(request)
    form = ConnectForm(request.POST, offer=offer)
    if not form.is_valid():
        return _page(request, offer, form)
    try:
        added = add(form.entered(), request.POST.get("model", ""))
    except InvalidProvider as error:
        added = ServerAnswer(problem=str(error))
    if isinstance(added, ServerAnswer):
        return _page(request, offer, form, found=added)
    if not request.htmx:  # type: ignore[attr-defined]
        said = _("%(agent)s is added. Begin a dialog with it.") % {"agent": added.agent}
        messages.success(request, f"{said} {_('Kept from overflowing:')} {added.kept}")
        return HttpResponseRedirect(reverse("dialog_new"))
    return render(request, "dialogs/_connect_model.html", {"model": added, "just_added": True})


def _offer(request: HttpRequest) -> ServerPreset:
    asked = request.POST.get("offer") or request.GET.get("offer") or FIRST
    return OFFERS.get(asked, OFFERS[FIRST])


def _page(request: HttpRequest, offer: ServerPreset, form: ConnectForm, **context: Any) -> HttpResponse:
    """The page; for htmx only the part below the tabs."""
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    template = "dialogs/_connect.html" if is_fragment else "dialogs/connect.html"
    response = render(request, template, {"offers": OFFERS.values(), "offer": offer, "form": form} | context)
    if is_fragment:
        # Also where a row was asked for: a problem is told above all of them.
        response["HX-Retarget"], response["HX-Reswap"] = "#connect", "outerHTML"
    return response
