"""Texts for people: refusals of `writes`, headlines of failed generations, the engine's reasons.

Providers have errors of their own (`providers/base.py`); their codes are worded here. The engine's
codes are put through gettext when shown.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from health.compaction.terms.reasons import Reason, Why, from_json, text_of


class DialogError(ValueError):
    """The dialog cannot do that now. `str(error)` is a translated sentence."""


class DialogBusy(DialogError):
    """A turn is running; stop it or wait."""


# The codes of a full disk, by the attribute in which SQLite's, PostgreSQL's and the system's errors have theirs.
FULL: dict[str, tuple[object, ...]] = {
    "sqlite_errorcode": (sqlite3.SQLITE_FULL,),
    "sqlstate": ("53100",),
    "errno": (errno.ENOSPC, errno.EDQUOT),
}
# The system's words for it, which Redis passes on.
NO_SPACE = os.strerror(errno.ENOSPC)


def is_full(error: BaseException | None) -> bool:
    """Was there no room on the disk, or in the database? Django wraps what the database's own driver raises."""
    if error is None:
        return False
    if any(getattr(error, name, None) in codes for name, codes in FULL.items()):
        return True
    return is_full(error.__cause__ or error.__context__)


HEADLINES: dict[str, Promise] = {
    "not_configured": _("The provider's settings cannot be used. An admin must correct them."),
    "switched_off": _("Nothing was sent: an admin has switched this LLM off. Choose another one for this dialog."),
    "provider_unreachable": _("The provider did not answer."),
    "provider_failed": _("The provider reported an error of its own."),
    "rate_limited": _("The provider asks us to slow down."),
    "authentication_refused": _("The provider refused the key. An admin must set a valid one."),
    "model_not_found": _("The provider does not know this model."),
    "limit_unavailable": _("Nothing was sent: the server does not tell how large the LLM's context window is."),
    "request_refused": _("The provider refused the request."),
    "messages_refused": _("The server refused the messages in this order; they are sent again in a stricter one."),
    "tools_refused": _("The provider refused to be offered tools."),
    "media_refused": _(
        "The LLM or its server reads no images, sound or files. Leave them out, or choose an LLM that reads them."
    ),
    "bad_answer": _("The provider answered something that is no chat stream."),
    "answer_endless": _("The answer went on beyond what one answer may have, and was ended."),
    "empty_answer": _("The model ended its answer without a word; it is asked once more."),
    "context_overflow": _(
        "What is sent is longer than the LLM's context window. Shorten the message, the Taskdoc or the reminders, "
        "or change to a larger LLM."
    ),
    "answer_too_long": _(
        "Prompt and answer together are longer than the LLM's context window; it is asked for a shorter answer. To "
        "avoid that, lower the agent's max output tokens, or change to a larger LLM."
    ),
    "context_filled": _("The answer filled the context before a word of it was said."),
    "context_compaction_failed": _("What must be sent does not fit the context, and compacting it does not help."),
    "compaction_off": _("What is sent does not fit the LLM's context window, and compaction is switched off."),
    "worker_died": _("The worker stopped three times while it was answering."),
    "slice_failed": _(
        "Dominds failed three times while it worked on this, and has stopped. Try again or write something else; if it "
        "happens again, tell whoever runs this server: the log has the details."
    ),
    "internal_error": _("Dominds failed while it was answering. The log has the details."),
}


def headline(code: str) -> Promise:
    """One sentence for a generation's error code; the provider's own words stand beside it."""
    return HEADLINES.get(code, _("The answer could not be made."))


def calm_words(told: Any) -> tuple[str, str] | None:
    """The words for a compaction that nobody needed: one line, and what stands below it. None for all other reasons.

    Either there is nothing to compact, or compaction cannot free more: then the largest contributors and what to do.
    """
    reason = told if isinstance(told, Reason) else from_json(told)
    if reason is None:
        return None
    if reason.why in (Why.NOTHING_TO_COMPACT, Why.NOTHING_IN_UNKNOWN):
        return in_words(reason), ""
    if reason.why is Why.STUCK:
        return gettext("Compaction cannot free more"), in_words(reason.args["why"])
    return None


def in_words(told: Any) -> str:
    """A reason, also one that was stored. An old row's text, and a code of another version, are shown as they are."""
    reason = told if isinstance(told, Reason) else from_json(told)
    return reason.in_language(gettext) if reason else text_of(told or "")
