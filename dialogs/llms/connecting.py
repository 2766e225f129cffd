"""Connecting a server: the choices, the form, and asking the server for its models, before and while one is added.
Never in a transaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.llms.reads import llms_at, provider_at, settings_for
from dialogs.llms.words import kept_by_agent
from dialogs.llms.writes.providers import InvalidProvider, clean_api_key, connect, record_server
from dialogs.models import LLM, Agent
from dialogs.models.provider import ProviderKind
from dialogs.providers import probe
from dialogs.providers.addresses import InvalidAddress, clean_base_url, native_root
from dialogs.providers.base import ModelFacts, ProviderError, ProviderSettings
from dialogs.providers.registry import KINDS


@dataclass(frozen=True)
class ServerPreset:
    """One choice of server. `name` becomes the provider's; `hint` says how to prepare the server."""

    name: str
    label: str | Promise
    kind: ProviderKind
    address: str
    hint: Promise
    is_hosted: bool = False


A_KEY = gettext_lazy("Make a key in your account there, and write it below. Then choose the models to talk with.")
OFFERS: dict[str, ServerPreset] = {
    offer.name: offer
    for offer in (
        ServerPreset(
            *("lmstudio", "LM Studio", ProviderKind.LMSTUDIO, "http://127.0.0.1:1234"),
            gettext_lazy(
                "In LM Studio, open Developer, start the server and load a model. Dominds counts with the window that "
                "the model is loaded with; choose it when you load the model."
            ),
        ),
        ServerPreset(
            *("ollama", "Ollama", ProviderKind.OLLAMA, "http://127.0.0.1:11434"),
            gettext_lazy(
                "Ollama serves as soon as it runs. Dominds asks it for the context length of the LLM's page with every "
                "request, and forbids it to drop old messages."
            ),
        ),
        ServerPreset(
            *("llamacpp", "llama.cpp", ProviderKind.LLAMACPP, "http://127.0.0.1:8080"),
            gettext_lazy("Start llama-server with a model. It tells how large a window one request has."),
        ),
        ServerPreset(
            *("vllm", "vLLM", ProviderKind.OPENAI, "http://127.0.0.1:8000/v1"),
            gettext_lazy("Start it with “vllm serve”. It tells each model's window."),
        ),
        ServerPreset("openai", "OpenAI", ProviderKind.OPENAI, "https://api.openai.com/v1", A_KEY, is_hosted=True),
        ServerPreset(
            *("anthropic", "Anthropic", ProviderKind.ANTHROPIC, "https://api.anthropic.com"), A_KEY, is_hosted=True
        ),
        ServerPreset(
            *("openrouter", "OpenRouter", ProviderKind.OPENAI, "https://openrouter.ai/api/v1"),
            gettext_lazy("Make a key in your account there. It lists some hundred models: write a part of the name."),
            is_hosted=True,
        ),
        ServerPreset(
            *("hosted", gettext_lazy("Another hosted service"), ProviderKind.OPENAI, "https://"),
            gettext_lazy(
                "Google Gemini, Mistral, DeepSeek, Groq, Qwen, Moonshot and most others speak OpenAI's chat "
                "completions. Their pages tell the address, which often ends with /v1, and where to make a key."
            ),
            is_hosted=True,
        ),
        ServerPreset(
            *("openai-compatible", gettext_lazy("Any OpenAI-compatible server")),
            *(ProviderKind.OPENAI, "http://127.0.0.1:8000/v1"),
            gettext_lazy("Any server that speaks OpenAI's chat completions. The address usually ends with /v1."),
        ),
    )
}
FIRST = "lmstudio"

UNREACHABLE = (
    gettext_lazy("Does the server run? Is the port right?"),
    gettext_lazy(
        "127.0.0.1 is the machine that Dominds runs on. A server elsewhere must listen on the network, not only there."
    ),
    gettext_lazy("In a container, 127.0.0.1 is the container: use the address of the machine around it."),
)
NOT_THIS_KIND = (
    gettext_lazy("Something answers there, but not as this kind of server does."),
    gettext_lazy("Is it another kind? Is the address complete?"),
)
# Advice for each of the provider's errors.
ADVICE: dict[str, tuple[Promise, ...]] = {
    "provider_unreachable": UNREACHABLE,
    "authentication_refused": (
        gettext_lazy("The server wants a key, or another one than this. Write it into the form."),
    ),
    "bad_answer": NOT_THIS_KIND,
    "model_not_found": NOT_THIS_KIND,
    "provider_failed": (gettext_lazy("The server answers, but with an error of its own. Its log says more."),),
    "rate_limited": (gettext_lazy("The server asks to wait. Try again in a minute."),),
}


EXACT = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
# The longest that all questions of one click may take together: a person waits for the page.
PATIENCE_SECONDS = 20.0
# The most models on the page; a person finds the others by a part of the name.
MOST_SHOWN = 40


class ConnectForm(forms.Form):
    """The key is never sent back: the browser keeps it in its field while the rest of the form is replaced."""

    offer = forms.ChoiceField(choices=[(name, name) for name in OFFERS], widget=forms.HiddenInput)
    address = forms.CharField(
        label=gettext_lazy("Address"), max_length=500, widget=forms.TextInput(attrs={"inputmode": "url", **EXACT})
    )
    key = forms.CharField(
        label=gettext_lazy("Key"),
        required=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"hx-preserve": "true", **EXACT}),
        help_text=gettext_lazy("Only if the server wants one. It is stored encrypted, once you add a model."),
    )
    part = forms.CharField(label=gettext_lazy("Part of the model's name"), required=False, max_length=100)

    def __init__(self, data: QueryDict | None = None, *, offer: ServerPreset, address: str = "") -> None:
        initial = {"offer": offer.name, "address": address or offer.address}
        super().__init__(data, initial=initial, auto_id="connect-%s", label_suffix="")
        if not offer.is_hosted:
            self.fields["part"].help_text = gettext_lazy("Empty: all of them.")

    def clean_key(self) -> str:
        try:
            return clean_api_key(self.cleaned_data["key"])
        except InvalidProvider as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """The address is checked here, since the valid ones depend on the kind."""
        data = super().clean() or self.cleaned_data
        if "offer" in data and "address" in data:
            try:
                data["address"] = clean_base_url(data["address"], kind=OFFERS[data["offer"]].kind)
            except InvalidAddress as error:
                self.add_error("address", str(error))
        return data

    def entered(self) -> ConnectInput:
        data = self.cleaned_data
        return ConnectInput(
            offer=OFFERS[data["offer"]], address=data["address"], key=data["key"], part=data["part"].strip()
        )


@dataclass(frozen=True, kw_only=True)
class ConnectInput:
    """The values of the form. `part`: a part of the model's name to search for."""

    offer: ServerPreset
    address: str
    key: str = field(default="", repr=False)
    part: str = ""


# Of models that have been added: their agent, and how it is guarded.
Added = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ServerAnswer:
    """The server's answer. `problem`: why there is none. `hidden`: how many models are not shown."""

    said: str = ""
    models: tuple[ServedModel, ...] = ()
    hidden: int = 0
    problem: str = ""
    # The address of an Ollama that is being connected as some other server.
    ollama: str = ""
    advice: tuple[Promise, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """One model of the server; once it is added also its agent, and how it is guarded (`kept`)."""

    facts: ModelFacts
    agent: Agent | None = None
    kept: str = ""


def ask_server(entered: ConnectInput) -> ServerAnswer:
    """Ask the server for its models."""
    return async_to_sync(_bounded)(entered, _settings(entered), _added(entered))


def add(entered: ConnectInput, model_id: str) -> ServedModel | ServerAnswer:
    """Add this model with an agent; or the problem, if the server does not know it."""
    try:
        facts, is_ollama = async_to_sync(_facts)(_settings(entered), model_id)
    except ProviderError as error:
        return _problem(error.code, str(error))
    except TimeoutError:
        return _silent()
    offer = entered.offer
    agent = connect(
        name=offer.name,
        kind=offer.kind,
        label=str(offer.label),
        base_url=entered.address,
        api_key=entered.key,
        facts=facts,
    )
    record_server(provider=agent.llm.provider, is_ollama=is_ollama)
    return ServedModel(facts=facts, agent=agent, kept=kept_by_agent(agent))


async def _bounded(entered: ConnectInput, settings: ProviderSettings, added: Added) -> ServerAnswer:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await _look(entered, settings, added)
    except TimeoutError:
        return _silent()


async def _look(entered: ConnectInput, settings: ProviderSettings, added: Added) -> ServerAnswer:
    result = await probe.test_connection(settings)
    if not result.ok:
        return _problem(result.error_code, result.text)
    wanted = [facts for facts in result.models if entered.part.lower() in facts.model_id.lower()]
    shown = wanted[:MOST_SHOWN]
    if KINDS[entered.offer.kind].list_is_terse:
        shown = list(await asyncio.gather(*(_more(settings, facts) for facts in shown)))
    models = tuple(ServedModel(facts=facts, **added.get(facts.model_id, {})) for facts in shown)
    ollama = native_root(entered.address) if result.is_ollama else ""
    return ServerAnswer(said=result.text, models=models, hidden=len(wanted) - len(shown), ollama=ollama)


async def _more(settings: ProviderSettings, facts: ModelFacts) -> ModelFacts:
    """The server's facts about this model, else those of its list."""
    try:
        return await probe.read_limits(settings, facts.model_id)
    except ProviderError:
        return facts


async def _facts(settings: ProviderSettings, model_id: str) -> tuple[ModelFacts, bool | None]:
    """What the server says of this model, and whether it is an Ollama that is added as some other kind."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await probe.read_limits(settings, model_id), await probe.is_ollama(settings)


def _settings(entered: ConnectInput) -> ProviderSettings:
    """How to ask the server: with the key that was typed, else with the one that is stored for this address."""
    known = provider_at(kind=entered.offer.kind, base_url=entered.address)
    if known is None:
        return ProviderSettings(
            name=entered.offer.name,
            kind=entered.offer.kind,
            base_url=entered.address,
            api_key=entered.key,
            connect_timeout=5.0,
        )
    stored = settings_for(known)
    return replace(stored, api_key=entered.key, problem="") if entered.key else stored


def _added(entered: ConnectInput) -> Added:
    """The models of this server that have an agent already, by their names."""
    llms = llms_at(kind=entered.offer.kind, base_url=entered.address)
    return {llm.model_id: {"agent": agent, "kept": kept_by_agent(agent)} for llm in llms if (agent := _agent(llm))}


def _agent(llm: LLM) -> Agent | None:
    return next((agent for agent in llm.agents.all() if agent.enabled and not (agent.is_demo or agent.is_direct)), None)


def _problem(code: str, text: str) -> ServerAnswer:
    return ServerAnswer(problem=text, advice=ADVICE.get(code, ()))


def _silent() -> ServerAnswer:
    seconds = f"{PATIENCE_SECONDS:g}"
    return _problem("provider_unreachable", _("no answer within %(seconds)s seconds") % {"seconds": seconds})
