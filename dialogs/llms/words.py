"""How a model is guarded, and where its limit comes from, in one line, for commands, pages and the doctor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.common.errors import in_words
from dialogs.llms.guard import Guard, bounds_of, cuts_silently, guard_of, has_limit, is_window_as_loaded, kind_of
from dialogs.models import LLM, Agent, Dialog
from dialogs.models.llm import Compaction, WindowSource
from dialogs.providers.addresses import native_root
from dialogs.providers.registry import WindowFrom
from health.limits import Term

SOURCES: dict[str, Promise] = {
    WindowSource.SERVER: gettext_lazy("from the server"),
    WindowSource.FILE: gettext_lazy("from the catalogue file"),
    WindowSource.ADMIN: gettext_lazy("set by an admin"),
    WindowSource.REFUSAL: gettext_lazy("learned from a refusal"),
    "": gettext_lazy("as written down"),
}

# Where a limit comes from.
TERMS: dict[str, Promise] = {
    "agent": gettext_lazy("agent"),
    "LLM": gettext_lazy("LLM type"),
    "default": gettext_lazy("default limit"),
    "P1 agent": gettext_lazy("P1 agent"),
    "floor": gettext_lazy("floor"),
    "window": gettext_lazy("window"),
    "bound": gettext_lazy("learned bound"),
    "room": gettext_lazy("room for a prompt"),
}


def kept_by_llm(llm: LLM) -> str:
    """How dialogs with this LLM are kept from overflowing, if they have no limit of their own."""
    return kept_in_dialog(Dialog(agent=Agent(llm=llm), llm=llm))


def kept_by_agent(agent: Agent) -> str:
    return kept_in_dialog(Dialog(agent=agent, llm=agent.llm))


def kept_in_dialog(dialog: Dialog) -> str:
    """ "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on"."""
    guard = guard_of(dialog)
    if guard is None:
        return _unguarded(dialog)
    if guard.refused:
        return in_words(guard.refused)
    return _("%(known)s; %(done)s") % {"known": _what_is_known(dialog, guard), "done": _what_is_done(dialog, guard)}


def who_switched_off(dialog: Dialog) -> str:
    """Where compaction is switched off (LLM, else agent, else dialog); empty if it is on."""
    if dialog.llm.compaction == Compaction.OFF:
        return _("for this LLM")
    if dialog.agent.compaction == Compaction.OFF:
        return _("for this agent")
    return _("for this dialog") if dialog.compaction == Compaction.OFF else ""


@dataclass(frozen=True)
class CompactionSwitch:
    """Whether a dialog is compacted by itself; if not, where that was switched off, and what it means with its LLM."""

    is_off: bool
    is_here: bool
    words: str


def switched_off(dialog: Dialog) -> CompactionSwitch:
    elsewhere = Compaction.OFF in (dialog.llm.compaction, dialog.agent.compaction)
    is_here = dialog.compaction == Compaction.OFF
    if elsewhere:
        said = _("Switched off %(who)s. Staff can switch it on again in the admin.") % {"who": who_switched_off(dialog)}
    elif cuts_silently(dialog.llm):
        said = _(
            "Off: nothing is compacted by itself. What does not fit is refused here with both sizes, as this server "
            "would read only a part of it without a word."
        )
    else:
        said = _(
            "Off: nothing is compacted by itself. What does not fit is refused by the server, and you can compact and "
            "ask again."
        )
    return CompactionSwitch(elsewhere or is_here, is_here, said)


def better_as_ollama() -> str:
    return _(
        "This is an Ollama. Behind OpenAI's API it does not tell its window, and cuts a long prompt without a word: "
        "connect it as Ollama, and Dominds asks it for a window and forbids it to cut."
    )


def command_for_ollama(base_url: str, *, name: str) -> str:
    return f"{settings.COMMAND} provider add ollama {native_root(base_url)} --name {name}"


def rounded(tokens: int) -> str:
    """An estimate as people say it: two figures are enough, and three of a large number."""
    step = 10 ** max(0, len(str(tokens)) - 2 - (tokens >= 10_000))
    return f"{round(tokens / step) * step:,}"


def traced(trace: Iterable[Term]) -> str:
    """Where a limit comes from: "default limit 5,000 → window 3,686"."""
    return " → ".join(f"{TERMS[term.what]} {term.tokens:,}" for term in trace)


def _unguarded(dialog: Dialog) -> str:
    if who := who_switched_off(dialog):
        return _("compaction is off %(who)s; the window is unknown, and the server refuses what does not fit") % {
            "who": who
        }
    if is_window_as_loaded(dialog.llm):
        return _("not loaded: the window is read from LM Studio before each request, and nothing is sent without it")
    if kind_of(dialog.llm).window is WindowFrom.MODEL:
        return _("its window is unknown until the server has loaded it: it is asked before each request")
    return _("its window is unknown: it is learned from the first refusal; until then nothing is compacted")


def _what_is_known(dialog: Dialog, guard: Guard) -> str:
    window, llm = guard.window, dialog.llm
    if has_limit(dialog) and guard.is_narrowed:
        if window is None:
            return _("a limit of %(limit)s tokens is set") % {"limit": f"{guard.limit:,}"}
        words = _("a limit of %(limit)s tokens is set, window %(window)s")
        return words % {"limit": f"{guard.limit:,}", "window": f"{window:,}"}
    if window is None:
        return _("its window is unknown: by what it read and refused, ≈%(tokens)s tokens have room") % {
            "tokens": rounded(guard.room)
        }
    known = _("window %(window)s %(source)s, %(answer)s kept for the answer") % {
        "window": f"{window:,}",
        "source": _source(llm),
        "answer": f"{guard.answer:,}",
    }
    if bounds_of(llm).cut_at and guard.room < window - guard.answer:
        known += _(", but it was seen to read no more than ≈%(tokens)s") % {"tokens": rounded(guard.room)}
    return known


def _what_is_done(dialog: Dialog, guard: Guard) -> str:
    if not guard.off:
        return _("compaction from ≈%(tokens)s tokens on") % {"tokens": rounded(guard.begins_at)}
    off = _("compaction is off %(who)s") % {"who": who_switched_off(dialog)}
    if guard.cuts_silently:
        return off + _(", so what does not fit is refused here, as the server would cut it without a word")
    return off + _(", and the server refuses what does not fit")


def _source(llm: LLM) -> str:
    if is_window_as_loaded(llm):
        return _("as loaded in LM Studio")
    if not llm.context_length:
        return _("from its input length")
    return str(SOURCES.get(llm.context_length_source, SOURCES[""]))
