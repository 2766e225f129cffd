"""Checks base URLs, from the command, the admin's form and files; and makes a provider's API root from one (with or
without `/v1`). Pure.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import PurePosixPath
from urllib.parse import SplitResult, urlsplit

from django.utils.translation import gettext as _

SCRIPTED = "scripted"
_BARE = re.compile(r"(?P<host>[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?(/[^\s:]*)?")
# The end of a request's whole address, which people copy instead of the base URL.
_ENDPOINT = re.compile(
    r"(?:/chat/completions|(?<=/v1)/(?:models|messages|responses|embeddings)|(?<=/api)/(?:chat|tags|generate))\Z"
)
_HOST = re.compile(r"[A-Za-z0-9._\-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?")


class InvalidAddress(ValueError):
    """`str(error)` is a translated sentence that says what to write instead."""


def clean_base_url(text: str, *, kind: str) -> str:
    """The address as it is stored, with a scheme and without a trailing slash. Raises InvalidAddress."""
    if kind == SCRIPTED:
        return _script_name(text.strip())
    text = with_scheme(text)
    parts = _parts(text)
    if parts.username is not None or parts.password is not None:
        raise InvalidAddress(_("Leave user name and password out of the base URL: a key is stored apart."))
    if parts.query or parts.fragment:
        raise InvalidAddress(_("A base URL ends with its path: leave out what follows “?” or “#”."))
    return _ENDPOINT.sub("", text.rstrip("/"))


def with_scheme(text: str) -> str:
    """Add the scheme that a person left out, as in "localhost:9999" and "api.example.com/v1".

    https for a name on the internet; http for an IP address, a name without a dot, and anything with a port.
    """
    text = text.strip()
    if not (found := _BARE.fullmatch(text)):
        return text
    is_near = found["port"] or "." not in found["host"] or found["host"].replace(".", "").isdigit()
    return f"{'http' if is_near else 'https'}://{text}"


def _parts(text: str) -> SplitResult:
    # No error quotes the text: it may hold a password.
    if re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise InvalidAddress(_("A base URL has no blanks, backslashes or control characters."))
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidAddress(_("This is no URL. Write one like http://127.0.0.1:8080/v1.")) from error
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        raise InvalidAddress(_("A base URL starts with http:// or https:// and a host, like http://127.0.0.1:8080/v1."))
    return parts


def _script_name(text: str) -> str:
    """A script is named by its path inside the data folder."""
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text or "\0" in text:
        raise InvalidAddress(_("A script is named by a path inside the data folder."))
    return text


def is_elsewhere(before: str, now: str) -> bool:
    """Is the new address on another server than the old one, whatever the path?"""
    one, other = urlsplit(before), urlsplit(now)
    return (one.scheme, one.netloc.lower()) != (other.scheme, other.netloc.lower())


def is_near(base_url: str) -> bool:
    """Does an address name this machine, or one in a private network?"""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal"))


def api_root(base_url: str) -> str:
    """The address without the `/v1` that people may or may not write after it."""
    return base_url.rstrip("/").removesuffix("/v1")


def native_root(base_url: str) -> str:
    """The root of a server's own API: people write the address with `/v1`, `/api`, `/api/v1` or none of them."""
    return api_root(base_url).removesuffix("/api").rstrip("/")


def openai_base(base_url: str) -> str:
    """Where chat completions live. A bare host gets `/v1`; a written path is taken as it is."""
    bare = urlsplit(base_url).path in {"", "/"}
    return f"{base_url.rstrip('/')}/v1" if bare else base_url.rstrip("/")


def is_openai(base_url: str) -> bool:
    """Is this OpenAI's own service, here or at Azure? It refuses fields that it does not know."""
    return f".{urlsplit(base_url).hostname or ''}".endswith((".openai.com", ".azure.com"))
