"""What a person writes to connect a server."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dialogs.llms.connecting.asking import Wish
from dialogs.llms.connecting.offers import OFFERS, Offer
from dialogs.llms.writes.providers import InvalidProvider, clean_api_key
from dialogs.providers.addresses import InvalidAddress, clean_base_url

EXACT = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class ConnectForm(forms.Form):
    """The key never comes back out: the browser keeps it in its field while the rest of the form is drawn anew."""

    offer = forms.ChoiceField(choices=[(name, name) for name in OFFERS], widget=forms.HiddenInput)
    address = forms.CharField(
        label=_("Address"), max_length=500, widget=forms.TextInput(attrs={"inputmode": "url", **EXACT})
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"hx-preserve": "true", **EXACT}),
        help_text=_("Only if the server wants one. It is stored encrypted, once you add a model."),
    )
    part = forms.CharField(label=_("Part of the model's name"), required=False, max_length=100)

    def __init__(self, data: QueryDict | None = None, *, offer: Offer, address: str = "") -> None:
        initial = {"offer": offer.name, "address": address or offer.address}
        super().__init__(data, initial=initial, auto_id="connect-%s", label_suffix="")
        if not offer.is_hosted:
            self.fields["part"].help_text = _("Empty: all of them.")

    def clean_key(self) -> str:
        try:
            return clean_api_key(self.cleaned_data["key"])
        except InvalidProvider as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """The address here: which ones are taken depends on the kind."""
        data = super().clean() or self.cleaned_data
        if "offer" in data and "address" in data:
            try:
                data["address"] = clean_base_url(data["address"], kind=OFFERS[data["offer"]].kind)
            except InvalidAddress as error:
                self.add_error("address", str(error))
        return data

    def wish(self) -> Wish:
        data = self.cleaned_data
        return Wish(offer=OFFERS[data["offer"]], address=data["address"], key=data["key"], part=data["part"].strip())
