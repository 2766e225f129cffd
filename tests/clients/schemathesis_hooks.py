"""What schemathesis is told of this Dominds, loaded by its program: which models there are, who may refuse what."""

from __future__ import annotations

from typing import Any

import schemathesis

MODELS = {"enum": ["scripted/tiny", "helper"]}
# Where a body is valid, and yet: the provider may say no, only the server knows which conversations there are, and what
# must stay (tools above all) may need more than the model's limit.
RIGHTLY_REFUSED = (
    ("request_refused", None),
    (None, "X-Dominds-Dialog"),
    ("context_compaction_failed", "messages"),
)


@schemathesis.hook
def before_load_schema(_context: Any, raw_schema: dict[str, Any]) -> None:
    """No name made up at random would ever be answered; the longest history there may be takes long to store."""
    schemas = raw_schema["components"]["schemas"]
    schemas["ChatBody"]["properties"]["model"] = schemas["CountBody"]["properties"]["model"] = MODELS
    del schemas["ChatBody"]["properties"]["messages"]["maxItems"]
    raw_schema["paths"]["/models/{model}"]["parameters"][0]["schema"] = MODELS


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Most histories made up at random end with nothing to answer, which the provider refuses; few ask for a stream."""
    if _is_valid(case) and isinstance(case.body, dict) and case.body.get("messages"):
        case.body["messages"].append({"role": "user", "content": "And now?"})
        case.body["stream"] = len(case.body["messages"]) % 2 == 0


def _is_valid(case: Any) -> bool:
    return bool(case.meta and case.meta.generation.mode.is_positive)


@schemathesis.check
def what_is_valid_is_refused_by_the_provider_only(_context: Any, response: Any, case: Any) -> None:
    if response.status_code == 400 and _is_valid(case):
        error = response.json()["error"]
        assert (error["code"], error["param"]) in RIGHTLY_REFUSED, error
