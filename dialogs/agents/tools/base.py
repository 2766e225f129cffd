"""Tools: a name, a description, a JSON schema and a function. Two kinds: on the dialog, and outside the database.

A tool returns a text for the model. It raises ToolError with a text for the model; any other exception is a bug, which
is logged, and the model gets a general sentence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dialogs.models import Dialog

Arguments = Mapping[str, Any]
Perform = Callable[[Dialog, Arguments], str]


class ToolError(Exception):
    """The tool could not do what was asked. `str(error)` is sent to the model: say what it can do instead."""


class TransientError(ToolError):
    """The call failed, and may go well in a moment. `unsent`: the tool has certainly not been asked yet, so nothing can
    happen twice."""

    def __init__(self, message: str, *, unsent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.unsent, self.retry_after = unsent, retry_after


@dataclass(frozen=True, kw_only=True)
class DialogTool:
    """Reads or writes this dialog, in one transaction with the record that it was done: never done twice."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    perform: Perform


def dialog_tool(description: str, **properties: Mapping[str, Any]) -> Callable[[Perform], DialogTool]:
    """Makes the function below a tool of its name. `properties` are its arguments, as `schema` takes them."""
    return lambda perform: DialogTool(
        name=perform.__name__, description=description, parameters=schema(**properties), perform=perform
    )


@dataclass(frozen=True, kw_only=True)
class OutsideTool:
    """Reaches outside the database. Awaited for at most `timeout_seconds`, each time it is tried.

    It is handed a key beside its arguments, the same whenever one call is made again. `idempotent`: may be run again
    after a crash, and after a failure that passes. `parallel`: may run beside its neighbours of one round.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    perform: Callable[[Arguments, str], Awaitable[str]]
    # The tool's name on its own server, if that is another name.
    own_name: str = ""
    idempotent: bool = False
    parallel: bool = False
    timeout_seconds: float = 60.0


Tool = DialogTool | OutsideTool


def schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these properties. One with `"optional": True` may be left out; the mark itself is removed."""
    required = [name for name, rules in properties.items() if not rules.get("optional")]
    kept = {
        name: {key: value for key, value in rules.items() if key != "optional"} for name, rules in properties.items()
    }
    return {"type": "object", "properties": kept, "required": required, "additionalProperties": False}


# Keys of a schema by which a call is checked, but which no model need read: each token is paid for in every request.
CHECKED_ONLY = frozenset({"additionalProperties", "minLength", "minimum", "maximum", "maxItems"})


def wire(tool: Tool) -> dict[str, Any]:
    """The tool in OpenAI's function form; one of ours without the keywords that only its calls are checked by."""
    parameters = _as_told(tool.parameters) if isinstance(tool, DialogTool) else dict(tool.parameters)
    described = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": described}


def _as_told(rules: Any) -> Any:
    if isinstance(rules, Mapping):
        return {key: _as_told(value) for key, value in rules.items() if key not in CHECKED_ONLY}
    return rules
