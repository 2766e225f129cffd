"""Every setting, read once from environment variables that begin with `DOMINDS_`.

An invalid value raises an error that names the variable. By default Dominds runs on one machine with SQLite and the
embedded servers that `manage.py up` starts. `DATABASE_URL` and `REDIS_URL` replace those.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from dominds.environment import data_folder, database, embedded_redis, flag, one_of, port, positive, stored_once, whole

# Every process reads this first: files that it writes can be read by their owner only.
os.umask(0o077)

BASE_DIR = Path(__file__).resolve().parent.parent
# Templates, translations and static files lie beside the packages in a clone; a wheel carries them inside this package.
IS_CLONE = (BASE_DIR / "manage.py").exists()
SHARED_DIR = BASE_DIR if IS_CLONE else BASE_DIR / "dominds" / "shared"
# The command's name, for messages to people.
COMMAND = "manage.py" if IS_CLONE else "dominds"
env = environ.Env()

# --- Ours -------------------------------------------------------------------------------------
DOMINDS_DATA_DIR = Path(
    env.str("DOMINDS_DATA_DIR", default=str(BASE_DIR / "var" if IS_CLONE else data_folder()))
).resolve()
# Where data packages are installed without `make` (`data_packages.py`). Last on the path, so that they hide nothing.
DATA_PACKAGES_DIR = DOMINDS_DATA_DIR / "packages"
sys.path.append(str(DATA_PACKAGES_DIR))
DOMINDS_DEBUG = flag("DOMINDS_DEBUG", default=False)
DOMINDS_HOST = env.str("DOMINDS_HOST", default="127.0.0.1")
DOMINDS_PORT = port("DOMINDS_PORT", 8000)
DOMINDS_ADMIN_USER = env.str("DOMINDS_ADMIN_USER", default="admin")
DOMINDS_ADMIN_PASSWORD = env.str("DOMINDS_ADMIN_PASSWORD", default="")
# Variables from which providers' keys may be read, beside those with KEY or TOKEN in their names.
DOMINDS_KEY_VARIABLES = frozenset(env.list("DOMINDS_KEY_VARIABLES", default=[]))
DOMINDS_LLM_FILE = Path(env.str("DOMINDS_LLM_FILE", default=".minds/llm.yaml"))
DOMINDS_LLM_FILE_REQUIRED = "DOMINDS_LLM_FILE" in os.environ
DOMINDS_DEMO_CONTEXT = int(positive("DOMINDS_DEMO_CONTEXT", 896))
DOMINDS_DEMO_PORT = port("DOMINDS_DEMO_PORT", 8091)
# `up` does not start with less free disk than this, in MB.
DOMINDS_MIN_FREE_MB = positive("DOMINDS_MIN_FREE_MB", 200)
# A Valkey or Redis server program to start instead of the one that the packages carry.
DOMINDS_VALKEY_PROGRAM = env.str("DOMINDS_VALKEY_PROGRAM", default="")
# A turn's lease: how long a dead worker's claim blocks others. A live one renews it after each third of it.
DOMINDS_LEASE_SECONDS = positive("DOMINDS_LEASE_SECONDS", 30)
DOMINDS_SWEEP_SECONDS = positive("DOMINDS_SWEEP_SECONDS", 5)
# Web processes behind one socket: each adds some 200 MB, and a core that parses requests and renders pages.
DOMINDS_WEB_PROCESSES = int(positive("DOMINDS_WEB_PROCESSES", min(4, len(os.sched_getaffinity(0)))))
# On PostgreSQL: how many connections a web process keeps at most; with 0 each page opens its own, and no
# statement is kept there.
DOMINDS_WEB_CONNECTIONS = whole("DOMINDS_WEB_CONNECTIONS", 20)
DOMINDS_TURN_THREADS = int(positive("DOMINDS_TURN_THREADS", 16))
DOMINDS_CONNECT_TIMEOUT = positive("DOMINDS_CONNECT_TIMEOUT", 10)
# Longest silence between two pieces of a stream. Prompt processing on a CPU can take minutes.
DOMINDS_READ_TIMEOUT = positive("DOMINDS_READ_TIMEOUT", 300)
# The most characters (with reasoning and calls) and seconds of one answer; beyond that it is ended.
DOMINDS_MAX_ANSWER_CHARS = int(positive("DOMINDS_MAX_ANSWER_CHARS", 4_000_000))
DOMINDS_MAX_ANSWER_SECONDS = positive("DOMINDS_MAX_ANSWER_SECONDS", 4 * 3600)
DOMINDS_PROVIDER_ATTEMPTS = int(positive("DOMINDS_PROVIDER_ATTEMPTS", 3))
DOMINDS_BACKOFF_BASE_SECONDS = positive("DOMINDS_BACKOFF_BASE_SECONDS", 2)
DOMINDS_BACKOFF_MAX_SECONDS = positive("DOMINDS_BACKOFF_MAX_SECONDS", 60)
# How long an autonomous run goes on trying while its provider fails.
DOMINDS_OUTAGE_SECONDS = positive("DOMINDS_OUTAGE_SECONDS", 24 * 3600)
DOMINDS_MAX_MESSAGE_CHARS = int(positive("DOMINDS_MAX_MESSAGE_CHARS", 2_000_000))
# Tools: rounds in one turn, bytes of a result in caution or critical, agents' folders.
DOMINDS_MAX_TOOL_ROUNDS = int(positive("DOMINDS_MAX_TOOL_ROUNDS", 25))
DOMINDS_TOOL_RESULT_BYTES = int(positive("DOMINDS_TOOL_RESULT_BYTES", 2000))
DOMINDS_WORKSPACES_DIR = Path(env.str("DOMINDS_WORKSPACES_DIR", default=str(DOMINDS_DATA_DIR / "workspaces"))).resolve()
# Compaction: how long a turn waits for a worker to claim a run.
DOMINDS_COMPACTION_WAIT_SECONDS = positive("DOMINDS_COMPACTION_WAIT_SECONDS", 3)
# The compaction worker loads the embedding model (some 500 MB) as a context fills, and begins anew without it once it
# was unused for so long; 0: it loads it soon after its start, and keeps it.
DOMINDS_EMBEDDINGS_IDLE_SECONDS = whole("DOMINDS_EMBEDDINGS_IDLE_SECONDS", 600)
# How long the pruning agent's answer may take.
DOMINDS_PRUNING_SECONDS = positive("DOMINDS_PRUNING_SECONDS", 120)
DOMINDS_TRASH_DAYS = positive("DOMINDS_TRASH_DAYS", 30)
# `/v1`: requests a minute of a key that has no limit of its own; 0 is no limit.
DOMINDS_API_REQUESTS_PER_MINUTE = whole("DOMINDS_API_REQUESTS_PER_MINUTE", 0)
# The scripted provider plays files from the data folder. For tests, benchmarks and screenshots.
DOMINDS_SCRIPTED = flag("DOMINDS_SCRIPTED", default=False)

# --- Django -----------------------------------------------------------------------------------
SECRET_KEY = env.str("DOMINDS_SECRET_KEY", default="") or stored_once(
    DOMINDS_DATA_DIR / "secret_key", lambda: secrets.token_urlsafe(48)
)
DEBUG = DOMINDS_DEBUG
ALLOWED_HOSTS = env.list("DOMINDS_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]", DOMINDS_HOST])
if "127.0.0.1" not in ALLOWED_HOSTS:
    # `up` and a container's health check use this address.
    ALLOWED_HOSTS.append("127.0.0.1")
CSRF_TRUSTED_ORIGINS = env.list("DOMINDS_TRUSTED_ORIGINS", default=[])
HTTPS = flag("DOMINDS_HTTPS", default=False)
SESSION_ENGINE = "dominds.handlers"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "channels",
    "dominds",
    "dialogs",
    "health",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "dominds.urls"
ASGI_APPLICATION = "dominds.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [SHARED_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dialogs.pages.views.shell.site",
            ],
        },
    }
]

DATABASES = {"default": database("DATABASE_URL", DOMINDS_DATA_DIR, is_prepared=DOMINDS_WEB_CONNECTIONS > 0)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PASSWORD_HASHERS = [
    "dialogs.pages.accounts.OneAtATime",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dialog_list"
LOGOUT_REDIRECT_URL = "login"
# How long a one-time sign-in link is valid, in seconds.
PASSWORD_RESET_TIMEOUT = 24 * 60 * 60

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [SHARED_DIR / "locale"]
USE_TZ = True
TIME_ZONE = one_of("DOMINDS_TIME_ZONE", "UTC", available_timezones())

STATIC_URL = "static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dominds.handlers.StaticFiles"},
}
STATICFILES_DIRS = [SHARED_DIR / "static"]
STATIC_ROOT = DOMINDS_DATA_DIR / "static"
# `up` serves with DEBUG off and without a collectstatic step of its own: WhiteNoise reads the finders.
WHITENOISE_USE_FINDERS = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 1024 * 1024
# The settings page has some ten fields for each LLM type and tool, the admin as many for each LLM of a provider.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000
# The largest upload of a dialog file that is read. The form accepts less, with a message.
DOMINDS_UPLOAD_BYTES = 64 * 1024 * 1024
# The largest websocket message, either way: more than the page's fragment for the longest message of a dialog.
DOMINDS_SOCKET_BYTES = 32 * 1024 * 1024

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        # For browsers whose 'self' does not include websockets.
        "connect-src": [SELF, "ws:", "wss:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- Redis, Channels, Celery ------------------------------------------------------------------
# Without REDIS_URL: the address of the embedded server, which is stored in the data folder.
REDIS_URL = env.str("REDIS_URL", default="") or stored_once(DOMINDS_DATA_DIR / "redis_url", embedded_redis)
if urlsplit(REDIS_URL).scheme not in {"redis", "rediss", "unix"}:
    raise ImproperlyConfigured("REDIS_URL must start with redis://, rediss:// or unix://.")

# More than the five seconds for which the channel layer waits for an event: the default would close idle sockets.
REDIS_PATIENCE_SECONDS = 15
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "dialogs.common.channel_layer.ChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": REDIS_PATIENCE_SECONDS}], "capacity": 500},
    }
}

# Celery's scheme for a socket file is another.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "turns"
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONSUMER = "dominds.consumer:Consumer"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Redis refuses writes while its disk is full. Without this a worker would end, and `up` at the fifth time.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
# Short: posting a message must not hang when Redis is away. The sweeper queues it again.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_connect_timeout": 2,
    "socket_timeout": 10,
    "max_retries": 1,
}
CELERY_TASK_PUBLISH_RETRY = False

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_LEVEL = one_of("DOMINDS_LOG_LEVEL", "INFO", LOG_LEVELS)
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "dominds.supervisor.log.WithoutTokens",
            "format": "{levelname:<7} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Named, since a Celery worker sets the root logger to its own `--loglevel`.
        "dialogs": {"level": LOG_LEVEL},
        "health": {"level": LOG_LEVEL},
        "daphne": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "anthropic": {"level": "WARNING"},
        # It logs a traceback for each line of a program that is not MCP; the call's error says it already.
        "mcp": {"level": "CRITICAL"},
        "client": {"level": "CRITICAL"},  # the SDK's sessions
    },
}
