"""A person steers a dialog: new course, answers to questions, language, pause, autonomous mode, reminders, Taskdoc."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from dialogs.agents import writes
from dialogs.compaction.reads.budget import own_tools_of
from dialogs.context.reads import task_snapshot
from dialogs.driver.writes.courses import return_to_earlier, set_handover_away, size_of_earlier, start_course
from dialogs.llms.words import switched_off
from dialogs.models import Dialog
from dialogs.models.dialog import OwnTools, WorkLanguage
from dialogs.models.llm import Compaction
from dialogs.models.reminder import Author
from dialogs.pages.views.dialog import act, action, sent, sheet
from dialogs.pages.views.manage import confirm
from dialogs.pages.writes import set_compaction, set_own_tools, set_work_language
from dialogs.transcript.views import View, number_or_zero, of_dialog
from dialogs.transcript.writes.task_snapshot import set_goal
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import autonomous, messages
from dialogs.turns.writes.messages import answer_question

USUAL_GENERATIONS = 50
_COURSE_QUESTION: dict[str, Any] = {
    "question": gettext_lazy("Begin a new course?"),
    "words": gettext_lazy(
        "The Taskdoc and all reminders are carried over. Earlier messages stay readable here, "
        "but the model no longer sees them."
    ),
    "label": gettext_lazy("Begin a new course"),
    "button": "button-primary",
    "name_of_choice": "what",
    "choices": (
        (
            "carry",
            gettext_lazy("Carry over"),
            gettext_lazy(
                "The model keeps what you laid down, what is pinned, the last exchange and the most telling passages."
            ),
        ),
        ("empty", gettext_lazy("Begin empty"), gettext_lazy("The model keeps nothing else of what was said.")),
    ),
}
_BACK_QUESTION: dict[str, Promise | str] = {
    "question": gettext_lazy("Go back to the earlier course?"),
    "words": gettext_lazy(
        "The model sees the earlier course again. What was said in this course stays stored: once you write, it is "
        "another version of what follows."
    ),
    "label": gettext_lazy("Go back"),
    "button": "button-primary",
}


@of_dialog("GET", "HEAD", "POST")
def course_new(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    if request.method != "POST":
        return confirm(request, dialog, _COURSE_QUESTION)
    return act(request, dialog, partial(start_course, dialog=dialog, empty=request.POST.get("what") == "empty"))


@of_dialog("GET", "HEAD", "POST")
def course_back(request: HttpRequest, dialog: Dialog, number: int) -> HttpResponse:
    if request.method != "POST":
        return confirm(request, dialog, _BACK_QUESTION | {"words": _words_of_going_back(dialog, number)})
    return act(request, dialog, partial(return_to_earlier, dialog=dialog, number=number))


def _words_of_going_back(dialog: Dialog, number: int) -> str:
    words, found = str(_BACK_QUESTION["words"]), size_of_earlier(dialog, number)
    if found is None:
        return words
    tokens, is_compacted = found
    then = (
        _("With it the next request takes ≈%(tokens)s tokens, and is compacted first.")
        if is_compacted
        else _("With it the next request takes ≈%(tokens)s tokens, and is sent as it is.")
    )
    return f"{then % {'tokens': f'{tokens:,}'}} {words}"


@of_dialog("POST")
def handover(request: HttpRequest, dialog: Dialog, number: int) -> HttpResponse:
    """Take the handover of a course away from the model, or bring it back."""
    away = bool(request.POST.get("away"))
    return act(request, dialog, partial(set_handover_away, dialog=dialog, number=number, away=away))


@of_dialog("POST")
def answer(request: HttpRequest, dialog: Dialog, question_id: int) -> HttpResponse:
    words = request.POST.get("answer", "")
    give = partial(answer_question, dialog=dialog, question_id=question_id, answer=words)
    return act(request, dialog, give, draft=words)


@never_cache
@of_dialog("GET")
def settings(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """The settings of this dialog alone. Each is a form that redirects back here."""
    context = {
        "dialog": dialog,
        "work_languages": WorkLanguage.choices,
        "switched_off": switched_off(dialog),
        "task": task_snapshot(dialog),
        "tools": own_tools_of(dialog_to_drive(dialog.pk)),
    }
    return render(request, "dialogs/settings.html", context)


@of_dialog("POST")
def goal(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    return act(request, dialog, partial(set_goal, dialog=dialog, goal=request.POST.get("goal", "")))


def _choosing(service: Callable[..., object], name: str, choices: Collection[str]) -> View:
    """A view that stores one of these settings; form field and service have the same name for it."""

    @of_dialog("POST")
    def view(request: HttpRequest, dialog: Dialog) -> HttpResponse:
        chosen = request.POST.get(name, "")
        if chosen not in choices:
            raise Http404(_("There is no such choice."))
        return act(request, dialog, partial(service, dialog=dialog, **{name: chosen}))

    return view


own_tools = _choosing(set_own_tools, "own_tools", OwnTools.values)
language = _choosing(set_work_language, "language", WorkLanguage.values)
compaction = _choosing(set_compaction, "compaction", Compaction.values)
pause = action(messages.pause)
go_on = action(messages.go_on)
run_end = action(autonomous.end_run)


@never_cache
@of_dialog("GET", "HEAD", "POST")
def run_start(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """The form, and what it asks for."""
    if request.method != "POST":
        return _start_form(request, dialog, max_generations=USUAL_GENERATIONS)
    goal, most = request.POST.get("goal", ""), request.POST.get("max_generations", "")
    start = partial(autonomous.start_run, dialog=dialog, goal=goal, max_generations=number_or_zero(most))
    return sent(request, dialog, start, partial(_start_form, request, dialog, goal=goal, max_generations=most))


def _start_form(request: HttpRequest, dialog: Dialog, **typed: Any) -> HttpResponse:
    return sheet(
        request,
        dialog,
        "dialogs/_autonomous_start.html",
        question=_("Keep going on its own"),
        goal_chars=autonomous.GOAL_CHARS,
        most=autonomous.MAX_GENERATIONS,
        **typed,
    )


@of_dialog("POST")
def add(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    content = request.POST.get("content", "")
    write = partial(writes.add_reminder, dialog=dialog, content=content, author=Author.PERSON)
    return act(request, dialog, write, draft=content)


@of_dialog("POST")
def edit(request: HttpRequest, dialog: Dialog, number: int) -> HttpResponse:
    content = request.POST.get("content", "")
    write = partial(
        writes.update_reminder,
        dialog=dialog,
        number=number,
        content=content,
        author=Author.PERSON,
        version=_version_read(request),
    )
    return act(request, dialog, write, draft=content)


remove = action(writes.remove_reminder)
restore = action(writes.restore_reminder)


@of_dialog("POST")
def move(request: HttpRequest, dialog: Dialog, number: int) -> HttpResponse:
    up = request.POST.get("direction") == "up"
    return act(request, dialog, partial(writes.move_reminder, dialog=dialog, number=number, up=up))


@of_dialog("POST")
def taskdoc(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    content = request.POST.get("content", "")
    write = partial(writes.write_taskdoc, dialog=dialog, content=content, version=_version_read(request))
    return act(request, dialog, write, draft=content)


def _version_read(request: HttpRequest) -> int:
    """The version that the form showed; 0, which is never current, if there is none: then nothing is overwritten."""
    return number_or_zero(request.POST.get("version", ""))
