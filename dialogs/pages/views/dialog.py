"""One dialog: its page, actions on its messages, and parts of the transcript that are fetched on demand (an earlier
course, the whole result of a call).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from dialogs.common.errors import DialogError
from dialogs.compaction.writes.manual_compaction import Shortfall, compact_and_change, complete, shortfall
from dialogs.context.chart import chart
from dialogs.llms.words import switched_off
from dialogs.models import LLM, Dialog, Message
from dialogs.pages.reads.page import choosable_llms, dialog_parts
from dialogs.pages.reads.transcript import SHOWN_ROWS, course_page, place_of
from dialogs.pages.views.lists import sidebar
from dialogs.pages.writes import change_llm
from dialogs.transcript.attachments import attached_image
from dialogs.transcript.reads.courses import current_course, earlier_course
from dialogs.transcript.reads.tool_calls import whole_result
from dialogs.transcript.views import View, number_or_zero, of_dialog, person_of, render_part, way_back, whole_text
from dialogs.transcript.writes.marks import set_pin, set_priority
from dialogs.turns.writes import messages as service


@never_cache
@of_dialog("GET")
def page(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    return render(request, "dialogs/detail.html", _page_context(request, dialog))


def _page_context(request: HttpRequest, dialog: Dialog) -> dict[str, Any]:
    # Without scripts a message's menu is opened by this parameter; the message may be one that is not shown.
    everything = not {"all", "menu"}.isdisjoint(request.GET)
    parts = dialog_parts(dialog, limit=None if everything else SHOWN_ROWS)
    query = {"lang": get_language() or "", "version": parts["transcript"].version} | ({"all": 1} if everything else {})
    return parts | {
        "chart": chart(parts["history"]),
        "llms": choosable_llms(),
        "renaming": "rename" in request.GET,
        "menu_of": number_or_zero(request.GET.get("menu", "")),
        # The token of one sending: sent twice, it is stored as one message.
        "sending": uuid4().hex,
        "sidebar": sidebar(person_of(request)),
        "socket_url": f"/ws/dialogs/{dialog.pk}/?{urlencode(query)}",
    }


@of_dialog("POST")
def send(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    content, sending = request.POST.get("content", ""), request.POST.get("sending", "")
    return act(
        request,
        dialog,
        lambda: service.post_once(dialog=dialog, content=content, sending=sending),
        draft=content,
    )


@of_dialog("POST")
def edit(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    message = _message(dialog, message_id)
    content = request.POST.get("content", "")
    return act(
        request,
        dialog,
        lambda: service.edit_message(dialog=dialog, message=message, content=content),
        draft=content,
    )


@never_cache
@of_dialog("GET")
def edit_form(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    context = {"dialog": dialog, "message": _message(dialog, message_id)}
    return render_part(request, "dialogs/rows/_edit.html", context, title=_("Rewrite your message"))


@of_dialog("POST")
def branch(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    message = _message(dialog, message_id)
    return act(request, dialog, lambda: service.choose_branch(dialog=dialog, message=message))


@of_dialog("POST")
def set_llm(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    chosen = next((llm for llm in choosable_llms() if str(llm.pk) == request.POST.get("llm")), None)
    if chosen is None:
        raise Http404(_("There is no such LLM."))
    how = request.POST.get("how", "")
    if how == "compact":
        by = person_of(request)
        return act(request, dialog, lambda: compact_and_change(dialog=dialog, llm=chosen, by=by))
    lacking = None if how == "now" or chosen.pk == dialog.llm_id else shortfall(dialog, chosen)
    if lacking is not None and not dialog.is_client_driven:
        # A warning, no error: the person may want to edit or branch first.
        return _ask_how(request, dialog, chosen, lacking)
    return act(request, dialog, lambda: change_llm(dialog=dialog, llm=chosen))


def _ask_how(request: HttpRequest, dialog: Dialog, llm: LLM, lacking: Shortfall) -> HttpResponse:
    context = {
        "dialog": dialog,
        "llm": llm,
        "lacking": lacking,
        "will_compact": not switched_off(dialog).is_off,
        "sheet": "dialogs/_smaller_llm.html",
        "question": _("Change to a smaller LLM?"),
        "back": reverse("dialog", args=[dialog.pk]),
    }
    return render(request, "dialogs/confirm.html", context)


def _message(dialog: Dialog, message_id: int) -> Message:
    return get_object_or_404(Message, dialog=dialog, pk=message_id)


def act(request: HttpRequest, dialog: Dialog, action: Callable[[], object], *, draft: str = "") -> HttpResponse:
    """Perform an action. The socket updates the page; without scripts the page is loaded again.

    A refusal is a 422 with the reason, and the typed text is kept.
    """
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    try:
        action()
    except DialogError as error:
        if is_fragment:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        context = _page_context(request, dialog) | {"error": str(error), "draft": draft}
        return render(request, "dialogs/detail.html", context, status=422)
    if is_fragment:
        return HttpResponse(status=204)
    there = way_back(request, fallback=f"{reverse('dialog', args=[dialog.pk])}#end")
    if there == reverse("dialog_settings", args=[dialog.pk]):
        messages.success(request, _("Saved."))
    return redirect(there)


def action(service: Callable[..., object], *, by: bool = False) -> View:
    """A view that performs this action on a dialog. Other arguments come from the URL; with `by` it gets the person."""

    @of_dialog("POST")
    def view(request: HttpRequest, dialog: Dialog, **named: Any) -> HttpResponse:
        person = {"by": person_of(request)} if by else {}
        return act(request, dialog, partial(service, dialog=dialog, **named, **person))

    return view


retry = action(service.retry)
cancel_queued = action(service.cancel_queued)
stop = action(service.request_stop)


@never_cache
@of_dialog("GET")
def course(request: HttpRequest, dialog: Dialog, number: int) -> HttpResponse:
    """A page of an earlier course, below its heading in the transcript; without JavaScript a page of its own."""
    now = current_course(dialog)
    if now is not None and now.number == number:
        return redirect("dialog", dialog.pk)
    found = earlier_course(dialog, number=number)
    if found is None:
        raise Http404(_("There is no such course."))
    page = max(1, number_or_zero(request.GET.get("page", "1")))
    rows, more = course_page(dialog, course_id=found.course.pk, last_id=found.last_id, page=page)
    context = {"dialog": dialog, "earlier": found, "rows": rows, "page": page, "next_page": page + 1 if more else None}
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    return render(request, "dialogs/_course_rows.html" if is_fragment else "dialogs/course.html", context)


@never_cache
@of_dialog("GET")
def message(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    """To a message, also where the page does not show it at once: far back, or in an earlier course."""
    course, query = place_of(dialog, _message(dialog, message_id))
    page = reverse("dialog_course", args=(dialog.pk, course)) if course else reverse("dialog", args=(dialog.pk,))
    return redirect(f"{page}{query}#message-{message_id}")


@never_cache
@of_dialog("GET")
def result(request: HttpRequest, dialog: Dialog, call_id: int) -> HttpResponse:
    """The whole result of a tool call."""
    whole = whole_result(dialog, call_id=call_id)
    if whole is None:
        raise Http404(_("There is no such tool call."))
    return whole_text(request, whole)


@of_dialog("GET")
def image(request: HttpRequest, dialog: Dialog, message_id: int, place: int) -> HttpResponse:
    """An image of a message. Messages never change, so browsers may cache it."""
    found = attached_image(dialog, message_id=message_id, place=place)
    if found is None:
        raise Http404(_("There is no such image."))
    media_type, content = found
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return HttpResponse(content, content_type=media_type, headers=headers)


@of_dialog("POST")
def pin(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    pinned = request.POST.get("pinned") == "1"
    return act(request, dialog, partial(set_pin, dialog=dialog, message_id=message_id, pinned=pinned))


@of_dialog("POST")
def priority(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    chosen, area = request.POST.get("priority", ""), request.POST.get("area", "")
    mark = partial(set_priority, dialog=dialog, message_id=message_id, priority=chosen, area=area)
    return act(request, dialog, mark)


@of_dialog("POST")
def done(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    """The task of a P1 message. Where a fresh start is offered after it, the question comes next."""
    offers: list[bool] = []
    by = person_of(request)
    answer = act(request, dialog, lambda: offers.append(complete(dialog=dialog, message_id=message_id, by=by)))
    if not any(offers):
        return answer
    back = reverse("dialog", args=[dialog.pk])
    question = f"{reverse('compaction_reset', args=[dialog.pk])}?milestone=1&next={back}"
    # See Other: an htmx request follows it too, and gets the question as a modal.
    return HttpResponseRedirect(question, status=303)


def sheet(request: HttpRequest, dialog: Dialog, template: str, *, status: int = 200, **shown: Any) -> HttpResponse:
    is_modal = bool(request.htmx)  # type: ignore[attr-defined]
    about = {"dialog": dialog, "is_modal": is_modal, "sheet": template, "back": reverse("dialog", args=[dialog.pk])}
    return render(request, template if is_modal else "dialogs/confirm.html", shown | about, status=status)


def sent(
    request: HttpRequest, dialog: Dialog, action: Callable[[], object], again: Callable[..., HttpResponse]
) -> HttpResponse:
    """Perform a form's action. Without scripts a refusal shows the form `again`, with the typed values."""
    if request.htmx:  # type: ignore[attr-defined]
        return act(request, dialog, action)
    try:
        action()
    except DialogError as error:
        return again(status=422, error=str(error))
    return redirect(f"{reverse('dialog', args=[dialog.pk])}#end")
