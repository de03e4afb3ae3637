"""Django's settings, all of them derived from `postdate.config`."""

from datetime import timedelta

import dj_database_url

from postdate.config import ROOT, Config

#: What the environment says; other code reads `settings.POSTDATE.<field>`.
POSTDATE = Config.load()
#: The module that chooses implementations; `queues.apps` plugs it in.
POSTDATE_WIRING = "postdate.wiring"

# --- who we are
BASE_DIR = ROOT
ROOT_URLCONF = "postdate.urls"
WSGI_APPLICATION = "postdate.wsgi.application"
SECRET_KEY = POSTDATE.signing_key()
DEBUG = False
LANGUAGE_CODE = "en-us"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "rest_framework",
    "drf_spectacular_sidecar",
    "queues",
    "scheduler",
    "analytics",
]

# The order is the order of cost: programs leave at the first door, static files at the fourth.
MIDDLEWARE = [
    "postdate.middleware.program_door",
    "django.middleware.security.SecurityMiddleware",
    "postdate.middleware.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["postdate.console.tags"],
        },
    },
]

# --- control plane
_SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": POSTDATE.data_dir / "postdate.sqlite3",
    "OPTIONS": {
        "timeout": 20,
        # Taking the write lock at BEGIN waits for it; taking it later fails at once as "locked".
        "transaction_mode": "IMMEDIATE",
        # A topic or key that was acknowledged survives power loss: FULL, for these few writes.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    },
}
DATABASES = {
    "default": dj_database_url.parse(
        POSTDATE.database_url, conn_max_age=60, conn_health_checks=True
    )
    if POSTDATE.database_url
    else _SQLITE
}
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# --- loops
CELERY_BROKER_URL = POSTDATE.broker_url

# --- static files, served by this process and no one else's
STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600

# --- who may ask, and how
_LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
_WILDCARD_HOSTS = {"0.0.0.0", "::"}  # noqa: S104 (compared with, not bound to)
if POSTDATE.public_host:
    ALLOWED_HOSTS = [POSTDATE.public_host, *_LOOPBACK_HOSTS]
    CSRF_TRUSTED_ORIGINS = [POSTDATE.public_url]
elif POSTDATE.host in _WILDCARD_HOSTS:
    # Listening everywhere under no name: the operator's network decides who reaches it.
    ALLOWED_HOSTS = ["*"]
else:
    ALLOWED_HOSTS = [POSTDATE.host, *_LOOPBACK_HOSTS]
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
SESSION_COOKIE_NAME = "postdate_session"
CSRF_COOKIE_NAME = "postdate_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = POSTDATE.is_public_tls
CSRF_COOKIE_HTTPONLY = True
# A working day: whoever leaves the desk for longer logs in again.
SESSION_COOKIE_AGE = 12 * 3600
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = POSTDATE.is_public_tls
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if POSTDATE.is_public_tls else 0
if POSTDATE.is_public_tls:
    # The proxy that ends TLS must set or remove this header itself.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SILENCED_SYSTEM_CHECKS = [
    # HSTS speaks for this host only; subdomains and preload lists are their owner's decision.
    "security.W005",
    "security.W021",
]

# --- failed logins: five as one person from one address, and both wait a quarter of an hour
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "postdate.console.shell.locked_out"
AXES_CLIENT_IP_CALLABLE = "postdate.console.shell.address_of"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# --- logs: one line an event, on standard error, for whoever supervises
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"},
    },
    "filters": {
        "exceptions": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: record.exc_info is not None,
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # An answer of 4xx or 503 says itself why, and is counted; only exceptions are logged.
        "django.request": {
            "handlers": ["stderr"],
            "level": "ERROR",
            "filters": ["exceptions"],
            "propagate": False,
        },
        "django.security.DisallowedHost": {"handlers": ["stderr"], "level": "CRITICAL"},
    },
}
