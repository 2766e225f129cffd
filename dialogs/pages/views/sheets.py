"""A form about a dialog: in a modal, or on a page of its own without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.pages.views.dialog import act


def sheet(request: HttpRequest, dialog: Dialog, template: str, *, status: int = 200, **shown: Any) -> HttpResponse:
    is_modal = bool(request.htmx)  # type: ignore[attr-defined]
    about = {"dialog": dialog, "is_modal": is_modal, "sheet": template, "back": reverse("dialog", args=[dialog.pk])}
    return render(request, template if is_modal else "dialogs/confirm.html", shown | about, status=status)


def sent(
    request: HttpRequest, dialog: Dialog, action: Callable[[], object], again: Callable[..., HttpResponse]
) -> HttpResponse:
    """Do what the form asks for. Without JavaScript a refusal shows it `again`, as it was typed."""
    if request.htmx:  # type: ignore[attr-defined]
        return act(request, dialog, action)
    try:
        action()
    except DialogError as error:
        return again(status=422, error=str(error))
    return redirect(f"{reverse('dialog', args=[dialog.pk])}#end")
