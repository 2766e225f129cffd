"""Filters and tags of the dialog's templates: Markdown, speakers, token counts, durations; and menus and plain rows,
which are rendered once with stand-ins for what differs (ids, texts) and then filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from sys import getsizeof
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django import template
from django.template import Context, RequestContext
from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from dialogs.common.bounded import BoundedCache
from dialogs.common.text import blank, sentences
from dialogs.context.chart import short
from dialogs.llms.writes.providers import small_window_ceiling
from dialogs.models import Dialog, Generation, MessageMark
from dialogs.pages.reads.rows import MessageRow, Row
from dialogs.pages.rendering import made_once, render_block, render_markdown, split_blocks
from dialogs.sample.reads import own_sample, player, tour_of
from dialogs.transcript.views import speaker
from health.models import HealthReading
from health.selectors import Meter

register = template.Library()
register.filter("speaker", speaker)
register.simple_tag(blank)
register.filter(sentences)
# {% once "dialogs/_meter_bar.html" meter=meter %}: an include whose output is cached by its values.
register.simple_tag(made_once, name="once")
STALE = {
    "compacted": gettext_lazy("before compaction"),
    "undone": gettext_lazy("before undoing"),
    "new_course": gettext_lazy("earlier course"),
    "other_branch": gettext_lazy("other version"),
    "other_window": gettext_lazy("other window"),
}

# The states that the strip above the list counts.
DOING = {
    "running": gettext_lazy("running"),
    "waiting": gettext_lazy("waiting for you"),
    "paused": gettext_lazy("paused"),
    "failed": gettext_lazy("failed"),
}


@register.filter
def doing_word(kind: str) -> str:
    return str(DOING.get(kind, kind))


@register.filter
def markdown(text: str) -> SafeString:
    return render_markdown(text)


@register.filter
def blocks(text: str) -> list[SafeString]:
    """The text's blocks, rendered one by one, for an answer that is still growing."""
    return [render_block(block) for block in split_blocks(text)]


@register.filter
def level_word(level: str) -> str:
    """The level's word in the reader's language."""
    return str(HealthReading.Level(level).label)


@register.filter
def meter_words(meter: Meter) -> str:
    """The meter as text, for screen readers."""
    return " · ".join(filter(None, (_measured_words(meter), limit_words(meter))))


def _measured_words(meter: Meter) -> str:
    if meter.is_left:
        return f"{tokens(meter.prompt_tokens)}, {stale_word(meter.stale)}"
    if meter.fill is None:
        return level_word(meter.level)
    return _("%(used)s of %(window)s tokens, %(percent)s, %(level)s") % {
        "used": tokens(meter.prompt_tokens),
        "window": tokens(meter.context_window),
        "percent": meter.percent_text,
        "level": level_word(meter.level),
    }


@register.filter
def limit_words(meter: Meter) -> str:
    """The limit that compaction goes by, where it is not the window; empty where it is."""
    if meter.limit is None:
        return ""
    if meter.limit_is_learned:
        words = _("Compaction goes by a limit of ≈%(limit)s tokens, learned from use.")
    else:
        words = _("Compaction goes by a limit of %(limit)s tokens, set by an admin.")
    return words % {"limit": tokens(meter.limit)}


@register.filter
def caution_source(meter: Meter) -> str:
    """Where the caution threshold comes from. For a small window Dominds itself stores one: that is a default too."""
    if not meter.optimal_configured:
        return _("default")
    if meter.optimal_max_tokens == small_window_ceiling(meter.context_window):
        return _("default: three quarters of the window")
    return _("configured")


@register.filter
def stale_word(why: str) -> str:
    """What has changed since an old number was measured, shown beside it."""
    return str(STALE.get(why, why))


@register.filter
def generation_words(read: Meter) -> str:
    """The generation's number, with its course's, since numbers begin anew in each course."""
    if (read.course_number or 1) == 1:
        return _("generation %(number)s") % {"number": read.generation_number}
    return _("course %(course)s, generation %(number)s") % {
        "course": read.course_number,
        "number": read.generation_number,
    }


@register.filter
def tokens(count: int | None) -> str:
    """41200 -> "41,200"; nothing for an unknown count."""
    return "" if count is None else f"{count:,}"


@register.filter
def short_tokens(count: int | None) -> str:
    """41200 -> "41.2k"."""
    return "" if count is None else short(count)


@register.filter
def hundredths(share: float | None) -> str:
    """A share of 1 as SVG units of 100: 0.25 -> "25.0"."""
    return "0" if share is None else f"{share * 100:.1f}"


@register.filter
def seconds_since(end: datetime | None, start: datetime | None) -> str:
    """How long something took, "3.2 s"; nothing while it lasts, and where the clock was set back meanwhile."""
    return f"{(end - start).total_seconds():.1f} s" if end and start and end >= start else ""


@register.filter
def answer_facts(made: Generation) -> str:
    """Who answered, with how many tokens, and how long that took."""
    lasted = seconds_since(made.finished_at, made.started_at)
    return " · ".join(filter(None, (made.llm_name, _tokens_of(made), lasted)))


def _tokens_of(made: Generation) -> str:
    if made.prompt_tokens is None:
        return _("tokens unknown")
    if made.completion_tokens is None:
        return _("%(prompt)s prompt tokens") % {"prompt": tokens(made.prompt_tokens)}
    return _("%(prompt)s prompt + %(completion)s completion tokens") % {
        "prompt": tokens(made.prompt_tokens),
        "completion": tokens(made.completion_tokens),
    }


@register.simple_tag
def time_units() -> str:
    # Translators: day, hour, minute and second as they follow a number; one word each, separated by spaces.
    return _("d h min s")


@register.filter
def lasting(seconds: int) -> str:
    """The two largest units: 260 -> "4 min 20 s"."""
    counts = (seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    parts = [f"{count} {unit}" for count, unit in zip(counts, time_units().split(), strict=False)]
    first = next((at for at, count in enumerate(counts) if count), len(parts) - 1)
    return " ".join(parts[first : first + 2])


# Stand-ins for ids that differ from row to row, for a mark's area and for the CSRF token.
NO_DIALOG, NO_MESSAGE, NO_GENERATION = UUID(int=2**128 - 1), 10**18 - 1, 10**18 - 2
AN_AREA, OF_THE_PERSON = "area-of-the-message", "token-of-the-person"
A_NAME, A_LIST, A_QUOTED_LIST = "name-of-the-dialog", "address-of-the-list", "quoted-address-of-the-list"
WORDS = (AN_AREA, OF_THE_PERSON, A_NAME, A_QUOTED_LIST, A_LIST)
STAND_INS = re.compile("|".join(map(str, (NO_DIALOG, NO_MESSAGE, NO_GENERATION, *WORDS))))
_PIECES: BoundedCache[tuple[Any, ...], list[str | int]] = BoundedCache(1024 * 1024)


@register.simple_tag(takes_context=True)
def message_menu(context: Context, row: MessageRow, dialog: Dialog) -> SafeString:
    """The menu of a message without its entries, which `message_actions` writes once for the page. Rendered once for
    all rows with the same possible actions; each row's ids are filled in."""
    if context.get("menu_of") == row.message.pk:
        return _open_menu(context, row, dialog)
    area = row.mark.area if row.mark else ""
    html = made_once(
        "dialogs/rows/_message_menu.html",
        pk=NO_MESSAGE,
        generation=NO_GENERATION if row.generation else None,
        states=" ".join(_states(row)),
        priority=row.mark.priority if row.mark else None,
        area=AN_AREA if area else "",
    )
    mine = {NO_MESSAGE: row.message.pk, AN_AREA: escape(area)}
    return _filled(html, mine | ({NO_GENERATION: row.generation.pk} if row.generation else {}))


def _open_menu(context: Context, row: MessageRow, dialog: Dialog) -> SafeString:
    """The menu with its entries, for a browser without scripts; entries that do not apply are hidden."""
    values = {
        "is_open": True,
        "dialog_id": dialog.pk,
        "pk": row.message.pk,
        "generation": row.generation.pk if row.generation else NO_GENERATION,
        "states": _states(row),
        "priority": row.mark.priority if row.mark else None,
        "area": row.mark.area if row.mark else "",
        "csrf_token": context.get("csrf_token"),
    }
    return render_to_string("dialogs/rows/_message_menu.html", values)


TEXT, FACTS = "text-of-the-message", "facts-of-the-answer"


@register.simple_tag(takes_context=True)
def plain_row(context: Context, row: Row, dialog: Dialog) -> str:
    """The row of a plain message, as most are; empty for any other row."""
    if not isinstance(row, MessageRow) or not row.is_plain or context.get("menu_of") == row.message.pk:
        return ""
    return row_of(row, dialog)


def row_of(row: MessageRow, dialog: Dialog) -> SafeString:
    """A plain row. The template is rendered once for all rows that differ only in ids, text and facts."""
    message, made = row.message, row.generation
    finished = made is not None and made.finished_at is not None
    shape = (message.role, message.origin, finished, made is None, row.is_current, row.visibility, row.is_marked)
    key = (*shape, get_language(), speaker(message, dialog.agent), dialog.agent.is_demo)
    pieces = _PIECES.get(key)
    if pieces is None:
        pieces = _pieces(row, dialog)
        _PIECES.keep(key, pieces, size=sum(map(getsizeof, pieces)))
    text = render_markdown(message.content) if row.is_prose else escape(message.content)
    facts = escape(answer_facts(made)) if made else ""
    own = (str(message.pk), str(made.pk) if made else "", facts, text, escape(message.content))
    return mark_safe("".join([own[piece] if isinstance(piece, int) else piece for piece in pieces]))  # noqa: S308  escaped


def _pieces(row: MessageRow, dialog: Dialog) -> list[str | int]:
    """The rendered row, split at the stand-ins; a number is the index of a value to fill in."""
    message, made = copy(row.message), copy(row.generation)
    message.pk, message.content = NO_MESSAGE, TEXT
    if made:
        made.pk, made.llm_name = NO_GENERATION, FACTS
    stands_in = replace(row, message=message, generation=made, versions=(NO_MESSAGE,))
    html = render_to_string("dialogs/rows/message.html", {"row": stands_in, "dialog": dialog})
    text = render_markdown(TEXT) if row.is_prose else TEXT
    marks = [str(NO_MESSAGE), str(NO_GENERATION), escape(answer_facts(made)) if made else FACTS, text, TEXT]
    found = re.split(f"({'|'.join(map(re.escape, marks))})", html)
    return [marks.index(piece) if at % 2 else piece for at, piece in enumerate(found)]


@register.simple_tag(takes_context=True)
def message_actions(context: Context, dialog: Dialog) -> SafeString:
    """The entries of the messages' menus, once for the page: a script moves them into the menu that is opened."""
    html = made_once(
        "dialogs/_message_actions.html",
        dialog_id=NO_DIALOG,
        pk=NO_MESSAGE,
        generation=NO_GENERATION,
        states=(),
        priority=None,
        area="",
        csrf_token=OF_THE_PERSON,
    )
    return _filled(html, {NO_DIALOG: dialog.pk, OF_THE_PERSON: context.get("csrf_token")})


@register.simple_tag(takes_context=True)
def only(context: Context, state: str) -> SafeString:
    """Attributes of a menu's entry: the state in which a message has it, and `hidden` if this message is not in it."""
    return format_html('data-only="{}"{}', state, "" if state in context["states"] else mark_safe(" hidden"))


def _states(row: MessageRow) -> list[str]:
    """The states of a message that the entries of its menu depend on."""
    mark = row.mark
    true = {
        "past-editing": row.is_past_editing,
        "markable": row.can_be_marked,
        "pinned": mark is not None and mark.pinned,
        "unpinned": mark is None or not mark.pinned,
        "first": row.can_be_marked and mark is not None and mark.priority == MessageMark.Priority.P1,
        "archived": row.is_archived,
        "answer": row.generation is not None,
    }
    return [state for state, is_so in true.items() if is_so]


@register.simple_tag(takes_context=True)
def dialog_menu(context: Context, dialog: Dialog, driven: object) -> SafeString:
    """The menu of a dialog, rendered once for all dialogs in the same state."""
    html = made_once(
        "dialogs/_dialog_menu.html",
        dialog_id=NO_DIALOG,
        is_driven=bool(driven),
        is_archived=bool(dialog.archived_at),
        csrf_token=OF_THE_PERSON,
    )
    return _filled(html.rstrip(), {NO_DIALOG: dialog.pk, OF_THE_PERSON: context.get("csrf_token")})


@register.simple_tag(takes_context=True)
def menus(context: Context) -> SafeString:
    """The menus of every page, rendered once for all people with the same rights. An error page may have no user."""
    user, request, token = context.get("user"), context.get("request"), context.get("csrf_token")
    person = user if user is not None and user.is_authenticated else None
    can_admin = person is not None and bool(context.get("can_admin"))
    html = made_once(
        "_menus.html",
        language=context.get("language"),
        languages=tuple(context.get("languages") or ()),
        theme=context.get("theme"),
        themes=tuple((context.get("themes") or {}).items()),
        version=context.get("version"),
        name=A_NAME if person else "",
        next=A_LIST if request else "",
        can_admin=can_admin,
        can_connect=bool(person and can_admin and person.has_perm("dialogs.add_provider")),
        csrf_token=OF_THE_PERSON if token else "",
    )
    name, here = person.get_username() if person else "", request.get_full_path() if request else ""
    return _filled(html, {A_NAME: escape(name), A_LIST: escape(here), OF_THE_PERSON: token})


@register.simple_tag(takes_context=True)
def list_menu(context: Context, dialog: Dialog) -> SafeString:
    """The menu of a dialog in the list, rendered once for all dialogs of a shelf."""
    token, url = context.get("csrf_token"), context["list_url"]
    html = made_once(
        "dialogs/_list_menu.html",
        pk=NO_DIALOG,
        name=A_NAME,
        shelf=context["asked"].shelf,
        list_url=A_LIST,
        quoted_url=A_QUOTED_LIST,
        more="&" if "?" in url else "?",
        is_live=bool(context.get("is_live")),
        csrf_token=OF_THE_PERSON if token else "",
    )
    texts = {A_NAME: dialog.title or _("Untitled dialog"), A_LIST: url, A_QUOTED_LIST: quote(url, safe="")}
    escaped = {stands_in: escape(text) for stands_in, text in texts.items()}
    return _filled(html, {**escaped, NO_DIALOG: dialog.pk, OF_THE_PERSON: token})


def _filled(html: str, values: Mapping[Any, object]) -> SafeString:
    """All stand-ins replaced in one pass: a value, such as an area's name, may look like a stand-in."""
    texts = {str(stands_in): str(value) for stands_in, value in values.items()}
    return mark_safe(STAND_INS.sub(lambda found: texts.get(found[0], found[0]), html))  # noqa: S308  escaped, or Django's own


@register.inclusion_tag("dialogs/_sample_button.html", takes_context=True)
def sample_button(context: RequestContext) -> dict[str, Any]:
    """The button that adds a sample. A socket renders it without a request, and only for an empty list, so without a
    sample."""
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
