"""Which servers the guided form offers, where each usually is, and what to look at when one does not answer."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dialogs.models.llm import ProviderKind


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One choice. `name` becomes the provider's; `hint` says how the server is made ready."""

    name: str
    label: str | Promise
    kind: ProviderKind
    address: str
    hint: Promise
    is_hosted: bool = False


A_KEY = _("Make a key in your account there, and write it below. Then choose the models to talk with.")
OFFERS: dict[str, Offer] = {
    offer.name: offer
    for offer in (
        Offer(
            name="lmstudio",
            label="LM Studio",
            kind=ProviderKind.LMSTUDIO,
            address="http://127.0.0.1:1234",
            hint=_(
                "In LM Studio, open Developer, start the server and load a model. Dominds counts with the window that "
                "the model is loaded with; choose it when you load the model."
            ),
        ),
        Offer(
            name="ollama",
            label="Ollama",
            kind=ProviderKind.OLLAMA,
            address="http://127.0.0.1:11434",
            hint=_(
                "Ollama serves as soon as it runs. Dominds asks it for the context length of the LLM's page with every "
                "request, and forbids it to drop old messages."
            ),
        ),
        Offer(
            name="llamacpp",
            label="llama.cpp",
            kind=ProviderKind.LLAMACPP,
            address="http://127.0.0.1:8080",
            hint=_("Start llama-server with a model. It tells how large a window one request has."),
        ),
        Offer(
            name="vllm",
            label="vLLM",
            kind=ProviderKind.OPENAI,
            address="http://127.0.0.1:8000/v1",
            hint=_("Start it with “vllm serve”. It tells each model's window."),
        ),
        Offer(
            name="openai",
            label="OpenAI",
            kind=ProviderKind.OPENAI,
            address="https://api.openai.com/v1",
            hint=A_KEY,
            is_hosted=True,
        ),
        Offer(
            name="anthropic",
            label="Anthropic",
            kind=ProviderKind.ANTHROPIC,
            address="https://api.anthropic.com",
            hint=A_KEY,
            is_hosted=True,
        ),
        Offer(
            name="openrouter",
            label="OpenRouter",
            kind=ProviderKind.OPENAI,
            address="https://openrouter.ai/api/v1",
            hint=_("Make a key in your account there. It lists some hundred models: write a part of the name."),
            is_hosted=True,
        ),
        Offer(
            name="hosted",
            label=_("Another hosted service"),
            kind=ProviderKind.OPENAI,
            address="https://",
            hint=_(
                "Google Gemini, Mistral, DeepSeek, Groq, Qwen, Moonshot and most others speak OpenAI's chat "
                "completions. Their pages tell the address, which often ends with /v1, and where to make a key."
            ),
            is_hosted=True,
        ),
        Offer(
            name="openai-compatible",
            label=_("Any OpenAI-compatible server"),
            kind=ProviderKind.OPENAI,
            address="http://127.0.0.1:8000/v1",
            hint=_("Any server that speaks OpenAI's chat completions. The address usually ends with /v1."),
        ),
    )
}
FIRST = "lmstudio"

UNREACHABLE = (
    _("Does the server run? Is the port right?"),
    _("127.0.0.1 is the machine that Dominds runs on. A server elsewhere must listen on the network, not only there."),
    _("In a container, 127.0.0.1 is the container: use the address of the machine around it."),
)
NOT_THIS_KIND = (
    _("Something answers there, but not as this kind of server does."),
    _("Is it another kind? Is the address complete?"),
)
# What to look at, by the provider's error.
ADVICE: dict[str, tuple[Promise, ...]] = {
    "provider_unreachable": UNREACHABLE,
    "authentication_refused": (_("The server wants a key, or another one than this. Write it into the form."),),
    "bad_answer": NOT_THIS_KIND,
    "model_not_found": NOT_THIS_KIND,
    "provider_failed": (_("The server answers, but with an error of its own. Its log says more."),),
    "rate_limited": (_("The server asks to wait. Try again in a minute."),),
}
