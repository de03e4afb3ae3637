"""The configuration: every environment variable that Postdate reads, typed and checked at start.

Values come from the environment first, then from a `.env` file at the root of the checkout. Each
variable is described with its price in `docs/operating/configuration.md`; a test keeps the two in
step. Nothing else in the product reads the environment.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, DotEnvSettingsSource, SettingsConfigDict

from postdate.secrets_folder import read_or_make_secret
from postdate.sizes import parse_bytes
from queues.durations import parse_duration
from queues.store.errors import LevelTableInvalid
from queues.store.levels import LevelTable
from queues.store.timerunits import PRECISION_MS_MAX
from scheduler.wheel.limits import DELAY_MS_MAX, WINDOW_SLOTS_MIN

ROOT = Path(__file__).resolve().parents[2]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
#: A hundred years: with more, moments would lie before or behind those that can be written.
DURATION_MS_MAX = 36_525 * DAY_MS
#: What the control plane can lie in; drivers of others are not installed.
_DATABASES = frozenset({"django.db.backends.postgresql", "django.db.backends.sqlite3"})
#: What can carry ticks: a process's own memory, and Redis.
_BROKERS = frozenset({"memory", "redis", "rediss", "redis+socket"})
_UNUSABLE = "The configuration cannot be used. Change it in the environment or in .env:"
#: Words that switch a limit off.
OFF_WORDS = frozenset({"", "off", "none", "no", "false"})


class ConfigInvalid(ImproperlyConfigured):
    """A variable has a value that cannot be used."""


def _to_ms(value: object) -> object:
    if not isinstance(value, str):
        return value
    duration_ms = parse_duration(value.strip())
    if duration_ms is None:
        raise ValueError("write a duration, for example 250ms, 90s, 1h30m, 2d or PT90S")
    return duration_ms


def _at_most_a_century(value: int) -> int:
    if value > DURATION_MS_MAX:
        raise ValueError("at most 100 years (36525d)")
    return value


def _to_bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    size = parse_bytes(value)
    if size is None:
        raise ValueError("write a size, for example 536870912, 512MiB or 1GB")
    return size


def _none_if_off(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in OFF_WORDS else value


DurationMs = Annotated[
    int, BeforeValidator(_to_ms), Field(ge=1), AfterValidator(_at_most_a_century)
]
Bytes = Annotated[int, BeforeValidator(_to_bytes), Field(ge=0)]


class Config(BaseSettings):
    """What the environment says. Durations are milliseconds here, sizes bytes."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_file=None, env_ignore_empty=True, populate_by_name=True
    )

    # Web server
    host: str = Field("127.0.0.1", validation_alias="POSTDATE_HOST")
    port: int = Field(8000, ge=1, le=65_535, validation_alias="POSTDATE_PORT")
    web_processes: int = Field(2, ge=1, le=64, validation_alias="POSTDATE_WEB_PROCESSES")
    web_threads: int = Field(2_688, ge=8, le=4096, validation_alias="POSTDATE_WEB_THREADS")
    public_url: str | None = Field(None, validation_alias="POSTDATE_PUBLIC_URL")

    # Where things are kept
    data_dir: Path = Field(Path("var"), validation_alias="POSTDATE_DATA_DIR")
    database_url: str | None = Field(None, validation_alias="DATABASE_URL")
    broker_url: str = Field("memory://localhost/", validation_alias="CELERY_BROKER_URL")
    secret_key: str | None = Field(None, min_length=32, validation_alias="POSTDATE_SECRET_KEY")

    # First run
    admin_username: str = Field("admin", min_length=1, validation_alias="POSTDATE_ADMIN_USERNAME")
    admin_password: str | None = Field(None, validation_alias="POSTDATE_ADMIN_PASSWORD")
    bootstrap_api_key: str | None = Field(
        None,
        min_length=32,
        pattern=r"^[\x21-\x7e]+$",
        validation_alias="POSTDATE_BOOTSTRAP_API_KEY",
    )

    # Store
    flush: Literal["async", "sync"] = Field("async", validation_alias="POSTDATE_FLUSH")
    store_sizes: Literal["compact", "rocketmq"] = Field(
        "compact", validation_alias="POSTDATE_STORE_SIZES"
    )
    retention_ms: DurationMs = Field(72 * HOUR_MS, validation_alias="POSTDATE_RETENTION")
    dead_letter_retention_ms: DurationMs = Field(
        30 * DAY_MS, validation_alias="POSTDATE_DEAD_LETTER_RETENTION"
    )
    min_free_bytes: Annotated[Bytes | None, BeforeValidator(_none_if_off)] = Field(
        None, validation_alias="POSTDATE_MIN_FREE_BYTES"
    )
    auto_create_topics: bool = Field(True, validation_alias="POSTDATE_AUTO_CREATE_TOPICS")
    trace_consumption: bool = Field(True, validation_alias="POSTDATE_TRACE_CONSUMPTION")

    # Schedule
    delay_levels: str = Field(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        validation_alias="POSTDATE_DELAY_LEVELS",
    )
    clamp_delay_level: bool = Field(False, validation_alias="POSTDATE_CLAMP_DELAY_LEVEL")
    level_groups: int = Field(1, ge=1, le=18, validation_alias="POSTDATE_LEVEL_GROUPS")
    timer_engine: Literal["wheel", "rocksdb"] = Field(
        "wheel", validation_alias="POSTDATE_TIMER_ENGINE"
    )
    timer_max_delay_ms: DurationMs = Field(40 * DAY_MS, validation_alias="POSTDATE_TIMER_MAX_DELAY")
    timer_precision_ms: DurationMs = Field(1000, validation_alias="POSTDATE_TIMER_PRECISION")
    timer_window_ms: DurationMs = Field(7 * DAY_MS, validation_alias="POSTDATE_TIMER_WINDOW")
    timer_slot_limit: Annotated[int | None, BeforeValidator(_none_if_off)] = Field(
        None, ge=1, validation_alias="POSTDATE_TIMER_SLOT_LIMIT"
    )

    # Reports
    lateness_slo_ms: DurationMs = Field(100, validation_alias="POSTDATE_LATENESS_SLO")
    reports: Literal["scheduled", "manual"] = Field(
        "scheduled", validation_alias="POSTDATE_REPORTS"
    )

    analytics_install: bool = Field(True, validation_alias="POSTDATE_ANALYTICS_INSTALL")

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        try:
            path = value.expanduser()
            path = path if path.is_absolute() else ROOT / path
            nearest = next(one for one in (path, *path.parents) if one.exists())
            if not nearest.is_dir():
                raise ValueError(f"{nearest} is not a directory")
        except (OSError, RuntimeError) as error:  # The home of somebody unknown is the latter.
            raise ValueError(f"name a directory of this machine ({error})") from None
        return path

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str | None) -> str | None:
        if value is None:
            return None
        told = "write postgres://user:password@host/name, or nothing for SQLite"
        try:
            found = dj_database_url.parse(value)
        except ValueError:  # Its own words repeat what was given, a password perhaps.
            raise ValueError(told) from None
        is_named = found["NAME"] or "service" in found.get("OPTIONS", {})
        if found["ENGINE"] not in _DATABASES or not is_named:
            raise ValueError(told)
        return value

    @field_validator("broker_url")
    @classmethod
    def _broker(cls, value: str) -> str:
        parts = _split(value)
        if parts is None or parts.scheme not in _BROKERS or "://" not in value:
            raise ValueError("write redis://host:6379/0, or memory://localhost/ under `make up`")
        return value

    @field_validator("delay_levels")
    @classmethod
    def _table(cls, value: str) -> str:
        try:
            return LevelTable.parse(value).text
        except LevelTableInvalid as error:
            raise ValueError(f"{error.reason}; {error.hint}") from None

    @field_validator("timer_precision_ms")
    @classmethod
    def _precision(cls, value: int) -> int:
        if value > PRECISION_MS_MAX:
            raise ValueError("a slot is at most 100 s wide")
        return value

    @field_validator("timer_window_ms")
    @classmethod
    def _window(cls, value: int, info: ValidationInfo) -> int:
        if 2 * value > DELAY_MS_MAX:
            raise ValueError("the wheel reaches at most 12 days")
        # A precision that is wrong itself is not among the data; it is told under its own name.
        if value // info.data.get("timer_precision_ms", 1) < WINDOW_SLOTS_MIN:
            raise ValueError(
                f"the wheel has at least {WINDOW_SLOTS_MIN} slots: "
                f"{WINDOW_SLOTS_MIN} times POSTDATE_TIMER_PRECISION"
            )
        return value

    @field_validator("public_url")
    @classmethod
    def _origin(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = _split(value)
        if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("write it with its scheme, for example https://postdate.example.com")
        return value.rstrip("/")

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> "Config":
        """Read the environment and the `.env` file.

        `POSTDATE_ENV_FILE` names another file; empty, none is read. Raises `ConfigInvalid` with one
        line for each variable that is wrong.
        """
        env = os.environ if environment is None else environment
        env_file = env.get("POSTDATE_ENV_FILE", str(ROOT / ".env"))
        try:
            return cls(_env_file=env_file or None)
        except ValidationError as error:
            raise ConfigInvalid(_explain(error)) from None

    @property
    def store_dir(self) -> Path:
        """RocketMQ's root: the message store."""
        return self.data_dir / "store"

    @property
    def secrets_dir(self) -> Path:
        """Keys that were generated, 0600."""
        return self.data_dir / "secrets"

    @property
    def is_public_tls(self) -> bool:
        """Whether people reach the server over HTTPS."""
        return self.public_url is not None and self.public_url.startswith("https://")

    @property
    def public_host(self) -> str | None:
        """The host name of `public_url`."""
        return urlsplit(self.public_url).hostname if self.public_url else None

    def signing_key(self) -> str:
        """Return the key that signs sessions, receipts and page tokens.

        Raises `ConfigInvalid` where the data directory can keep none.
        """
        if self.secret_key:
            return self.secret_key
        try:
            return read_or_make_secret(self.secrets_dir, "secret_key")
        except OSError as error:
            told = f"the generated key cannot be kept there: {error}"
            line = f"  POSTDATE_DATA_DIR (it is {str(self.data_dir)!r}): {told}"
            raise ConfigInvalid(f"{_UNUSABLE}\n{line}") from error


def variable_names() -> dict[str, str]:
    """Return every variable by its field's name."""
    names = {name: str(field.validation_alias) for name, field in Config.model_fields.items()}
    return names | {"env_file": "POSTDATE_ENV_FILE"}


def misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each `POSTDATE_` variable, here or in `.env`, that nothing reads."""
    known = set(variable_names().values())
    env_file = environment.get("POSTDATE_ENV_FILE", str(ROOT / ".env"))
    written = DotEnvSettingsSource(Config, env_file=env_file or None).env_vars
    sentences = []
    for name in sorted({*environment, *(name.upper() for name in written)}):
        if name.startswith("POSTDATE_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            sentences.append(f"{name} is not a variable of Postdate and is ignored{hint}")
    return sentences


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None where it is none, or its port is no port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return None if port == 0 else parts


def _explain(error: ValidationError) -> str:
    """Return what to do, one line a variable; the value of a secret is not repeated."""
    lines = [_UNUSABLE]
    for item in error.errors(include_url=False, include_context=False):
        name = str(item["loc"][0])
        secret = any(word in name for word in ("KEY", "PASSWORD", "URL"))
        given = "" if secret else f" (it is {item['input']!r})"
        lines.append(f"  {name}{given}: {item['msg'].removeprefix('Value error, ')}")
    return "\n".join(lines)
