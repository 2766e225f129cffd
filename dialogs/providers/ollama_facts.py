"""What Ollama tells of its models, in three places: the list, what is loaded, one model at length. Pure.

Only what is loaded has a window; `model_info` holds what the model was trained for, which nobody may have set aside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from dialogs.providers.base import ModelFacts
from dialogs.providers.usage import whole
from dialogs.providers.wire import as_list, as_mapping, as_text

LATEST = ":latest"
TELLING = ("family", "parameter_size", "quantization_level")


def windows_in(body: object) -> Mapping[str, int]:
    """From `/api/ps`: the window of each model that is loaded."""
    loaded = [as_mapping(model) for model in as_list(as_mapping(body).get("models"))]
    return {_name(model): whole(model.get("context_length")) or 0 for model in loaded if _name(model)}


def models_in(body: object, *, windows: Mapping[str, int]) -> tuple[ModelFacts, ...]:
    """From `/api/tags`: every model that is there."""
    models = [as_mapping(model) for model in as_list(as_mapping(body).get("models"))]
    return tuple(
        _facts(_name(model), windows=windows, about=_about(as_mapping(model.get("details"))))
        for model in models
        if _name(model)
    )


def facts_of_model(model_id: str, shown: object, *, windows: Mapping[str, int]) -> ModelFacts:
    """From `/api/show`: the trained maximum, and the window that the model's own file asks for."""
    body = as_mapping(shown)
    info = as_mapping(body.get("model_info"))
    maximum = whole(info.get(f"{as_text(info.get('general.architecture'))}.context_length")) or None
    asked = re.search(r"^[ \t]*+num_ctx[ \t]++(\d{1,9})[ \t\r]*+$", as_text(body.get("parameters")), re.MULTILINE)
    return _facts(
        model_id,
        windows=windows,
        about=_about(as_mapping(body.get("details"))),
        maximum=maximum,
        asked=int(asked[1]) if asked else None,
        remote=bool(body.get("remote_host")),
    )


def _facts(
    name: str,
    *,
    windows: Mapping[str, int],
    about: str,
    maximum: int | None = None,
    asked: int | None = None,
    remote: bool = False,
) -> ModelFacts:
    allocated = windows.get(name, windows.get(name + LATEST))
    window, source = allocated or None, _("set aside now, %(path)s") % {"path": "/api/ps"}
    if window is None and remote:
        window, source = maximum, _("a model in Ollama's cloud, %(path)s") % {"path": "/api/show"}
    if window is None and asked:
        window, source = asked, _("num_ctx of the model's file, %(path)s") % {"path": "/api/show"}
    return ModelFacts(
        model_id=name,
        context_length=window,
        maximum=maximum,
        loaded=allocated is not None,
        source=source if window else "",
        note=about if window else _unknown(maximum, about),
    )


def _unknown(maximum: int | None, about: str) -> str:
    note = _("Ollama tells the window once it has loaded the model. Set a context length to ask for one.")
    if maximum:
        note += " " + _("The model can do %(maximum)s tokens at most.") % {"maximum": f"{maximum:,}"}
    return f"{note} ({about})" if about else note


def _name(model: Mapping[str, Any]) -> str:
    return as_text(model.get("name")) or as_text(model.get("model"))


def _about(details: Mapping[str, Any]) -> str:
    """What tells two models apart."""
    return ", ".join(filter(None, (as_text(details.get(name)) for name in TELLING)))
