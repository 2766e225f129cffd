"""Actions on a whole dialog from a list: rename, archive, delete, restore, export, import.

Every action is a POST that redirects to the list it came from. Deleting asks first, on a page that htmx shows as a
modal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.pages import writes
from dialogs.transcript.views import View, dialog_or_404, go_back, person_of, trash_days, way_back
from dialogs.transcript.writes import dialog_row as trash_can
from dialogs.transfer import NoAgent, export_json, export_markdown, import_dialog, parse_json

_TRASH_QUESTION: dict[str, Promise] = {
    "question": gettext_lazy("Delete this dialog?"),
    "words": gettext_lazy("It goes to the trash and is kept for %(days)s days. Until then you can restore it."),
    "label": gettext_lazy("Delete"),
}
_ERASE_QUESTION: dict[str, Promise] = {
    "question": gettext_lazy("Delete this dialog for ever?"),
    "words": gettext_lazy("All its messages and readings are erased. This cannot be undone."),
    "label": gettext_lazy("Delete for ever"),
}


def _name(dialog: Dialog) -> str:
    return dialog.title or _("Untitled dialog")


def _act(
    request: HttpRequest, dialog: Dialog, action: Callable[..., Any], said: Promise, **fields: Any
) -> HttpResponse:
    """Perform the action, show a message, and go back."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        changed = action(dialog=dialog, **fields)
    except DialogError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, str(said) % {"name": _name(changed or dialog)})
    return go_back(request)


def rename(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    title = request.POST.get("title", "")
    return _act(request, dialog, writes.rename_dialog, gettext_lazy("Renamed to “%(name)s”."), title=title)


def _deed(service: Callable[..., Any], said: Promise, question: Mapping[str, Promise] | None = None) -> View:
    """A view that performs this action on a dialog; with a question, a GET asks for confirmation."""

    def view(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
        dialog = dialog_or_404(request, dialog_id)
        if question and request.method == "GET":
            return confirm(request, dialog, question)
        return _act(request, dialog, service, said)

    return view


archive = _deed(writes.archive_dialog, gettext_lazy("“%(name)s” is archived."))
unarchive = _deed(writes.unarchive_dialog, gettext_lazy("“%(name)s” is active again."))
restore = _deed(writes.restore_dialog, gettext_lazy("“%(name)s” is restored."))
trash = _deed(writes.trash_dialog, gettext_lazy("“%(name)s” is in the trash."), _TRASH_QUESTION)
erase = _deed(trash_can.erase_dialog, gettext_lazy("“%(name)s” is erased."), _ERASE_QUESTION)


@never_cache
def confirm(request: HttpRequest, dialog: Dialog, question: Mapping[str, Promise | str]) -> HttpResponse:
    """The question, as a modal's content for htmx and as a page without it."""
    htmx = request.htmx  # type: ignore[attr-defined]
    shown_over = urlsplit(htmx.current_url or "").path
    context = {
        **question,
        "words": str(question["words"]) % {"days": trash_days()},
        "dialog": dialog,
        "action": request.path,
        "back": way_back(request),
        "is_modal": bool(htmx),
        # Only over the list is there a list to update; elsewhere the form leads away from the page.
        "in_place": bool(htmx) and shown_over == reverse("dialog_list"),
    }
    return render(request, "dialogs/_confirm.html" if htmx else "dialogs/confirm.html", context)


def as_json(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    text = json.dumps(export_json(dialog), ensure_ascii=False, indent=1)
    return _download(request, dialog, text, "json", "application/json")


def as_markdown(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return _download(request, dialog, export_markdown(dialog), "md", "text/markdown; charset=utf-8")


@never_cache
def _download(request: HttpRequest, dialog: Dialog, text: str, suffix: str, content_type: str) -> HttpResponse:
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    stem = slugify(dialog.title, allow_unicode=True)[:80] or "dialog"
    disposition = content_disposition_header(as_attachment=True, filename=f"{stem}.{suffix}")
    return HttpResponse(text, content_type=content_type, headers={"Content-Disposition": disposition})


IMPORT_LIMIT_MB = 50


class ImportForm(forms.Form):
    """A dialog file. Errors in it are shown at the field."""

    lacks_agent = False
    file = forms.FileField(
        label=gettext_lazy("Dialog file (JSON)"),
        error_messages={"required": gettext_lazy("Choose a file first."), "empty": gettext_lazy("The file is empty.")},
        widget=forms.ClearableFileInput(attrs={"accept": ".json,application/json"}),
    )

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > IMPORT_LIMIT_MB * 1024 * 1024:
            raise forms.ValidationError(
                gettext_lazy(
                    "The file is larger than %(limit)s MB. Import it on the server, with the command “dialog import”."
                ),
                params={"limit": IMPORT_LIMIT_MB},
            )
        return file

    def save(self, *, owner: User) -> Dialog | None:
        """The new dialog; None when the file is not one, and then the form says why."""
        try:
            return import_dialog(owner=owner, data=parse_json(self.cleaned_data["file"].read()))
        except DialogError as error:
            self.lacks_agent = isinstance(error, NoAgent)
            # Below it stands how an admin adds one.
            is_told_how = self.lacks_agent and owner.is_staff
            self.add_error("file", _("There is no agent to go on with.") if is_told_how else str(error))
            return None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def bring(request: HttpRequest) -> HttpResponse:
    """Import a dialog from a file that an export made."""
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    if form.is_bound:
        dialog = form.save(owner=person_of(request)) if form.is_valid() else None
        if dialog is not None:
            messages.success(request, _("“%(name)s” is imported.") % {"name": _name(dialog)})
            return redirect("dialog", dialog_id=dialog.pk)
    return render(request, "dialogs/import.html", {"form": form}, status=422 if form.errors else 200)
