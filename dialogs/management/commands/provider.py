"""`manage.py provider add | check | list`: LLM services from the command line, for people and for scripts.

Adding asks the server for its models. A server that does not answer is added all the same, with a warning.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dialogs.llms.reads import list_providers, missing_key, settings_for
from dialogs.llms.words import better_as_ollama, command_for_ollama, kept_by_llm
from dialogs.llms.writes.providers import (
    InvalidProvider,
    add_agent,
    add_llm,
    add_provider,
    record_limits,
    record_server,
)
from dialogs.models import Provider
from dialogs.models.provider import ProviderKind
from dialogs.providers import probe
from dialogs.providers.base import ModelFacts, ProviderError
from dialogs.providers.registry import KINDS

# If a server lists more, none is added by itself: they would fill every menu.
MOST_MODELS = 50
SIGNS = {"ok": "✓", "failed": "✗", "skipped": "-"}
OFFERED = [kind for kind in ProviderKind if kind != ProviderKind.SCRIPTED]


class Command(BaseCommand):
    help = "Add, check or list the LLM services that agents speak to."

    def add_arguments(self, parser: CommandParser) -> None:
        ways = parser.add_subparsers(dest="way", required=True)
        self._add_json(adding := ways.add_parser("add", help="add a service and its models"))
        adding.add_argument("kind", choices=[str(kind) for kind in OFFERED])
        adding.add_argument("url", help="base URL, such as http://127.0.0.1:8080/v1; 127.0.0.1:8080 will do")
        adding.add_argument("--name", required=True, help="short name: letters, digits, dashes")
        adding.add_argument("--key-env", default="", metavar="VAR", help="environment variable that holds the key")
        adding.add_argument("--model", action="append", default=[], metavar="ID", help="only these; default: all")
        adding.add_argument("--no-agent", action="store_true", help="do not make an agent for each model")
        self._add_json(checking := ways.add_parser("check", help="ask services whether they answer; read the windows"))
        checking.add_argument("name", nargs="?", help="only this one; default: all that have their key")
        self._add_json(ways.add_parser("list", help="show services, models and windows"))

    def handle(self, *args: Any, **options: Any) -> None:
        result: dict[str, Any] = getattr(self, f"_{options['way']}")(options)
        lines = result.pop("lines")
        self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) if options["json"] else "\n".join(lines))
        if result.get("failed"):
            raise CommandError(f"These do not answer: {', '.join(result['failed'])}.")

    @staticmethod
    def _add_json(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def _add(self, options: dict[str, Any]) -> dict[str, Any]:
        try:
            provider = add_provider(
                name=options["name"], kind=options["kind"], base_url=options["url"], api_key_env=options["key_env"]
            )
        except InvalidProvider as error:
            raise CommandError(str(error)) from error
        asked = asyncio.run(probe.test_connection(settings_for(provider)))
        record_server(provider=provider, is_ollama=asked.is_ollama)
        chosen = self._chosen(options["model"], asked.models)
        found = asyncio.run(_limits(provider, chosen, asked.models)) if asked.ok else {}
        llms = [add_llm(provider=provider, model_id=name, facts=found.get(name)) for name in chosen]
        agents = [] if options["no_agent"] else [add_agent(llm=llm) for llm in llms]
        said = f". {asked.text}" if asked.ok else f", but it does not answer now: {asked.text}"
        lines = [f"Added provider {provider.name}{said}"]
        lines += [f"  {llm.model_id}: {kept_by_llm(llm)}" for llm in llms]
        lines += _advice(provider)
        lines += [f"Agent: {agent.name}" for agent in agents]
        slugs = [agent.slug for agent in agents]
        return {**_as_json(provider), "answers": asked.ok, "said": asked.text, "agents": slugs, "lines": lines}

    def _chosen(self, wanted: list[str], listed: tuple[ModelFacts, ...]) -> list[str]:
        known = [facts.model_id for facts in listed]
        if wanted:
            for name in sorted(set(wanted) - set(known)) if known else ():
                self.stderr.write(f"The server does not list {name}; it is added all the same.")
            return list(dict.fromkeys(wanted))
        if len(known) > MOST_MODELS:
            self.stderr.write(f"The server lists {len(known)} models: none is added. Name those you want with --model.")
            return []
        return known

    def _check(self, options: dict[str, Any]) -> dict[str, Any]:
        checked = [self._check_one(provider) for provider in self._to_check(options["name"])]
        return {
            "providers": [{name: value for name, value in one.items() if name != "lines"} for one in checked],
            "lines": [line for one in checked for line in one["lines"]] or ["There is no provider to check."],
            "failed": [one["name"] for one in checked if one["state"] == "failed"],
        }

    def _to_check(self, name: str | None) -> list[Provider]:
        if not name:
            return list(list_providers(enabled_only=True))
        found = list_providers().filter(name=name).first()
        if found is None:
            raise CommandError(f"There is no provider called {name!r}. `provider list` shows them all.")
        return [found]

    def _check_one(self, provider: Provider) -> dict[str, Any]:
        """A service whose key is missing is skipped, not failed: probably nobody uses it."""
        if lacking := missing_key(provider):
            return _checked(provider, "skipped", lacking)
        asked = asyncio.run(probe.test_connection(settings_for(provider)))
        if not asked.ok:
            return _checked(provider, "failed", asked.text)
        record_server(provider=provider, is_ollama=asked.is_ollama)
        llms = {llm.model_id: llm for llm in provider.llms.filter(enabled=True)}
        found = asyncio.run(_limits(provider, list(llms), asked.models))
        models = {name: record_limits(llm=llms[name], facts=facts) for name, facts in found.items()}
        checked = _checked(provider, "ok", asked.text, models)
        kept = [f"  {name}: {kept_by_llm(llm)}" for name, llm in llms.items()]
        return {**checked, "lines": [*checked["lines"], *kept, *_advice(provider)]}

    def _list(self, options: dict[str, Any]) -> dict[str, Any]:
        rows = list(list_providers())
        lines = []
        for row in rows:
            notes = ", ".join(filter(None, [missing_key(row), "" if row.enabled else "switched off"]))
            lines.append(f"{row.name}  {row.kind}  {row.base_url}{f'  ({notes})' if notes else ''}")
            lines += [f"  {llm.model_id}: {kept_by_llm(llm)}" for llm in row.llms.all() if llm.enabled]
        return {"providers": [_as_json(row) for row in rows], "lines": lines or ["There is no provider yet."]}


async def _limits(provider: Provider, names: list[str], listed: tuple[ModelFacts, ...]) -> dict[str, ModelFacts]:
    """The server's facts about each model, from its list or, where that is terse, asked one by one."""
    known = {facts.model_id: facts for facts in listed if not KINDS[provider.kind].list_is_terse}
    return {name: known.get(name) or await _limit(provider, name) for name in names}


async def _limit(provider: Provider, name: str) -> ModelFacts:
    try:
        return await probe.read_limits(settings_for(provider), name)
    except ProviderError as error:
        return ModelFacts(model_id=name, note=str(error))


def _as_json(provider: Provider) -> dict[str, Any]:
    models = [
        {
            "id": llm.model_id,
            "context_length": llm.context_length,
            "context_length_source": llm.context_length_source,
            "input_length": llm.input_length,
            "optimal_max_tokens": llm.optimal_max_tokens,
            "critical_max_tokens": llm.critical_max_tokens,
            "compaction": llm.compaction,
            "kept": kept_by_llm(llm),
            "enabled": llm.enabled,
        }
        for llm in provider.llms.all()
    ]
    return {
        "name": provider.name,
        "kind": provider.kind,
        "base_url": provider.base_url,
        "origin": provider.origin,
        "enabled": provider.enabled,
        "missing_key": missing_key(provider),
        "models": models,
    }


def _advice(provider: Provider) -> list[str]:
    """Advice where an Ollama was added as an OpenAI-compatible server."""
    if not provider.is_hidden_ollama:
        return []
    name = provider.name if "ollama" in provider.name else "ollama"
    command = command_for_ollama(provider.base_url, name=f"{name}-2" if name == provider.name else name)
    return [f"  ! {better_as_ollama()}", f"    {command}"]


def _checked(provider: Provider, state: str, said: str, models: dict[str, str] | None = None) -> dict[str, Any]:
    lines = [f"{SIGNS[state]} {provider.name}: {said}", *(f"  {name}: {text}" for name, text in (models or {}).items())]
    return {"name": provider.name, "state": state, "said": said, "models": models or {}, "lines": lines}
