"""One dialog: its page, and what a person does to its messages. Reading and writing are done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dialogs.common.errors import DialogError
from dialogs.compaction.writes.manual_compaction import Shortfall, compact_and_change, shortfall
from dialogs.context.views.chart import chart
from dialogs.llms.words import switched_off
from dialogs.models import LLM, Dialog, Message
from dialogs.pages.reads.page import choosable_llms, dialog_parts
from dialogs.pages.reads.transcript import SHOWN_ROWS
from dialogs.pages.views.lists import sidebar
from dialogs.pages.writes.dialogs import change_llm
from dialogs.transcript.views.common import dialog_or_404, render_part, way_back
from dialogs.turns.writes import messages as service


@never_cache
@require_GET
def page(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return render(request, "dialogs/detail.html", _page_context(request, dialog))


def _page_context(request: HttpRequest, dialog: Dialog) -> dict[str, Any]:
    everything = "all" in request.GET
    parts = dialog_parts(dialog, limit=None if everything else SHOWN_ROWS)
    query = {"lang": get_language() or "", "version": parts["transcript"].version} | ({"all": 1} if everything else {})
    return parts | {
        "chart": chart(parts["history"]),
        "llms": choosable_llms(),
        "renaming": "rename" in request.GET,
        # One sending of what is typed: sent twice, it is one message.
        "sending": uuid4().hex,
        "sidebar": sidebar(cast("User", request.user)),
        "socket_url": f"/ws/dialogs/{dialog.pk}/?{urlencode(query)}",
    }


@require_POST
def send(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content, sending = request.POST.get("content", ""), request.POST.get("sending", "")
    return act(
        request,
        dialog,
        lambda: service.post_once(dialog=dialog, content=content, sending=sending),
        draft=content,
    )


@require_POST
def edit(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    message = _message(dialog, message_id)
    content = request.POST.get("content", "")
    return act(
        request,
        dialog,
        lambda: service.edit_message(dialog=dialog, message=message, content=content),
        draft=content,
    )


@never_cache
@require_GET
def edit_form(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    context = {"dialog": dialog, "message": _message(dialog, message_id)}
    return render_part(request, "dialogs/rows/_edit.html", context, title=_("Rewrite your message"))


@require_POST
def retry(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return act(request, dialog, lambda: service.retry(dialog=dialog))


@require_POST
def branch(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    message = _message(dialog, message_id)
    return act(request, dialog, lambda: service.choose_branch(dialog=dialog, message=message))


@require_POST
def cancel_queued(request: HttpRequest, dialog_id: UUID, queued_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return act(request, dialog, lambda: service.cancel_queued(dialog=dialog, queued_id=queued_id))


@require_POST
def stop(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return act(request, dialog, lambda: service.request_stop(dialog=dialog))


@require_POST
def set_llm(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    chosen = next((llm for llm in choosable_llms() if str(llm.pk) == request.POST.get("llm")), None)
    if chosen is None:
        raise Http404(_("There is no such LLM."))
    how = request.POST.get("how", "")
    if how == "compact":
        by = cast("User", request.user)
        return act(request, dialog, lambda: compact_and_change(dialog=dialog, llm=chosen, by=by))
    lacking = None if how == "now" or chosen.pk == dialog.llm_id else shortfall(dialog, chosen)
    if lacking is not None and not dialog.is_client_driven:
        # Said, not forbidden: the person may mean to edit or branch first.
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
    """Do it. The socket brings what changed; without JavaScript the page is shown again.

    A refusal is 422 with the reason, and the text that was typed is still there.
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
    return redirect(way_back(request, fallback=f"{reverse('dialog', args=[dialog.pk])}#end"))
