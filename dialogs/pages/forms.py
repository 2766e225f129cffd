"""What people send that needs checking before a service sees it."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from dialogs.common.errors import DialogError
from dialogs.llms.reads import choosable_agents
from dialogs.models import Agent, CompactionDisplay, Dialog
from dialogs.transfer import import_dialog, parse_json

IMPORT_LIMIT_MB = 50


class NewDialogForm(forms.Form):
    """The agent by its slug."""

    agent: forms.ModelChoiceField[Agent] = forms.ModelChoiceField(
        Agent.objects.none(),
        to_field_name="slug",
        error_messages={"invalid_choice": _("That agent is not there any more. Choose another.")},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent"].queryset = choosable_agents()  # type: ignore[attr-defined]


class ImportForm(forms.Form):
    """A dialog file. Whatever is wrong with it is said beside the field."""

    file = forms.FileField(
        label=_("Dialog file (JSON)"),
        error_messages={"required": _("Choose a file first."), "empty": _("The file is empty.")},
        widget=forms.ClearableFileInput(attrs={"accept": ".json,application/json"}),
    )

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > IMPORT_LIMIT_MB * 1024 * 1024:
            raise forms.ValidationError(
                _("The file is larger than %(limit)s MB. Import it on the server, with the command “dialog import”."),
                params={"limit": IMPORT_LIMIT_MB},
            )
        return file

    def save(self, *, owner: User) -> Dialog | None:
        """The new dialog; None when the file is not one, and then the form says why."""
        try:
            return import_dialog(owner=owner, data=parse_json(self.cleaned_data["file"].read()))
        except DialogError as error:
            self.add_error("file", str(error))
            return None


class CompactionDisplayForm(forms.ModelForm):
    """How a person wants to see compactions; the service writes what it has checked."""

    class Meta:
        model = CompactionDisplay
        fields = ("show", "detail", "auto_hide_seconds", "highlight_p1", "review_drafts")
        widgets: ClassVar[dict[str, forms.Widget]] = {
            "auto_hide_seconds": forms.NumberInput(attrs={"type": "range", "min": 1, "max": 10})
        }
