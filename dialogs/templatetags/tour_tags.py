"""What templates of other pages show of samples: the button that brings one in, and the tour on the archive's page."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import RequestContext

from dialogs.sample.reads import own_sample, player, tour_of

register = template.Library()


@register.inclusion_tag("dialogs/_sample_button.html", takes_context=True)
def sample_button(context: RequestContext) -> dict[str, Any]:
    """The button that brings a sample in. A socket renders it without a request: then nobody has a sample, as the list
    is empty."""
    request = context.get("request")
    return {
        "csrf_token": context.get("csrf_token"),
        "can_play": player() is not None,
        "has_sample": request is not None and own_sample(request.user) is not None,
    }


@register.inclusion_tag("dialogs/_tour.html", takes_context=True)
def archive_tour(context: RequestContext) -> dict[str, Any]:
    dialog = context["dialog"]
    return {"csrf_token": context.get("csrf_token"), "dialog": dialog, "tour": tour_of(dialog, in_archive=True)}
