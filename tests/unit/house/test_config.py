"""The configuration: what the environment may say, and what is answered to what it may not."""

import stat
from pathlib import Path

import pytest

from postdate.config import Config, ConfigInvalid, misspelt_variables
from postdate.secrets_folder import read_or_make_secret, write_once
from postdate.sizes import parse_bytes
from postdate.wiring import store_settings
from scheduler.wheel.geometry import WheelGeometry


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POSTDATE_ENV_FILE", "")
    monkeypatch.setenv("POSTDATE_DATA_DIR", str(tmp_path))


def test_without_any_variable_the_documented_defaults_hold() -> None:
    config = Config.load()
    assert (config.host, config.port, config.flush) == ("127.0.0.1", 8000, "async")
    assert config.retention_ms == 72 * 3_600_000
    assert config.timer_max_delay_ms == 40 * 86_400_000
    assert config.timer_slot_limit is None
    assert config.auto_create_topics


def test_durations_sizes_and_switches_are_read_as_people_write_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSTDATE_RETENTION", "1d12h")
    monkeypatch.setenv("POSTDATE_MIN_FREE_BYTES", "512MiB")
    monkeypatch.setenv("POSTDATE_AUTO_CREATE_TOPICS", "off")
    monkeypatch.setenv("POSTDATE_TIMER_SLOT_LIMIT", "off")
    config = Config.load()
    assert config.retention_ms == 36 * 3_600_000
    assert config.min_free_bytes == 512 * 1024 * 1024
    assert not config.auto_create_topics
    assert config.timer_slot_limit is None


def test_every_wrong_variable_is_named_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTDATE_PORT", "http")
    monkeypatch.setenv("POSTDATE_RETENTION", "soon")
    monkeypatch.setenv("POSTDATE_PUBLIC_URL", "postdate.example.com")
    with pytest.raises(ConfigInvalid) as refused:
        Config.load()
    lines = str(refused.value).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "POSTDATE_PORT",
        "POSTDATE_PUBLIC_URL:",
        "POSTDATE_RETENTION",
    ]
    assert "1h30m" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("POSTDATE_RETENTION", "99999999999w", "at most 100 years"),
        ("POSTDATE_TIMER_MAX_DELAY", "36526d", "at most 100 years"),
        ("DATABASE_URL", "garbage", "write postgres://"),
        ("DATABASE_URL", "mysql://x/y", "write postgres://"),
        ("DATABASE_URL", "postgres://u:p@host:99999/name", "write postgres://"),
        ("DATABASE_URL", "postgres://u:p@host", "write postgres://"),
        ("CELERY_BROKER_URL", "garbage", "write redis://"),
        ("CELERY_BROKER_URL", "amqp://host", "write redis://"),
        ("CELERY_BROKER_URL", "redis://host:port/0", "write redis://"),
        ("CELERY_BROKER_URL", "redis:host", "write redis://"),
        ("POSTDATE_PUBLIC_URL", "https://x:99999", "with its scheme"),
        ("POSTDATE_PUBLIC_URL", "https://x:0", "with its scheme"),
        ("POSTDATE_PUBLIC_URL", "https://[x", "with its scheme"),
        ("POSTDATE_DATA_DIR", "/etc/passwd", "/etc/passwd is not a directory"),
        ("POSTDATE_DATA_DIR", "/etc/passwd/data", "/etc/passwd is not a directory"),
        ("POSTDATE_DATA_DIR", "~nobody-of-this-name/data", "name a directory"),
    ],
)
def test_what_would_fail_later_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigInvalid, match=f"{name}.*: .*{told}") as refused:
        Config.load()
    assert "u:p@" not in str(refused.value), "a password is not repeated"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("POSTDATE_RETENTION", "36525d"),
        ("DATABASE_URL", "postgres://user:password@host:5432/name"),
        ("DATABASE_URL", "postgresql:///name"),
        ("DATABASE_URL", "sqlite:////var/lib/postdate.sqlite3"),
        ("CELERY_BROKER_URL", "memory://"),
        ("CELERY_BROKER_URL", "redis://:password@host:6379/0"),
        ("CELERY_BROKER_URL", "rediss://host:6380/0?ssl_cert_reqs=required"),
        ("CELERY_BROKER_URL", "redis+socket:///run/redis.sock"),
        ("POSTDATE_PUBLIC_URL", "https://postdate.example.com:8443"),
        ("POSTDATE_DATA_DIR", "/nowhere/yet"),
    ],
)
def test_what_can_work_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    assert Config.load()


def test_a_data_directory_that_can_keep_no_key_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("in the way")
    with pytest.raises(ConfigInvalid, match=r"POSTDATE_DATA_DIR .*cannot be kept there"):
        Config.load().signing_key()


@pytest.mark.parametrize("text", ["1s soon", "1s  5s", "1s,5s", "1w"])
def test_a_level_table_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("POSTDATE_DELAY_LEVELS", text)
    with pytest.raises(ConfigInvalid, match=r"POSTDATE_DELAY_LEVELS .*one space between them"):
        Config.load()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("POSTDATE_TIMER_PRECISION", "101s", "at most 100 s"),
        ("POSTDATE_TIMER_WINDOW", "13d", "at most 12 days"),
        ("POSTDATE_TIMER_WINDOW", "1s", "at least 4 slots"),
    ],
)
def test_a_wheel_that_cannot_be_made_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigInvalid, match=f"{name} .*{told}"):
        Config.load()


def test_the_smallest_window_is_counted_in_slots_of_the_width_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSTDATE_TIMER_WINDOW", "399s")
    assert Config.load().timer_window_ms == 399_000
    monkeypatch.setenv("POSTDATE_TIMER_PRECISION", "100s")
    with pytest.raises(ConfigInvalid, match="at least 4 slots"):
        Config.load()
    monkeypatch.setenv("POSTDATE_TIMER_PRECISION", "101s")
    with pytest.raises(ConfigInvalid, match="at most 100 s") as refused:
        Config.load()
    assert "POSTDATE_TIMER_WINDOW" not in str(refused.value), "one cause is told once"
    monkeypatch.setenv("POSTDATE_TIMER_PRECISION", "100s")
    monkeypatch.setenv("POSTDATE_TIMER_WINDOW", "400s")
    assert store_settings(Config.load()).sizes.timer_window_slots == 4


@pytest.mark.parametrize(
    ("precision", "window"), [("100s", "12d"), ("100s", "400s"), ("1ms", "4ms")]
)
def test_every_wheel_that_the_configuration_takes_can_be_made(
    monkeypatch: pytest.MonkeyPatch, precision: str, window: str
) -> None:
    monkeypatch.setenv("POSTDATE_TIMER_PRECISION", precision)
    monkeypatch.setenv("POSTDATE_TIMER_WINDOW", window)
    assert WheelGeometry.of(store_settings(Config.load()).sizes)


def test_a_refused_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTDATE_BOOTSTRAP_API_KEY", "too-short-a-key")
    with pytest.raises(ConfigInvalid) as refused:
        Config.load()
    assert "POSTDATE_BOOTSTRAP_API_KEY" in str(refused.value)
    assert "too-short-a-key" not in str(refused.value)


def test_the_env_file_fills_in_what_the_environment_does_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    env_file = tmp_path / "settings.env"
    env_file.write_text("POSTDATE_PORT=8123\nPOSTDATE_FLUSH=sync\n")
    monkeypatch.setenv("POSTDATE_ENV_FILE", str(env_file))
    monkeypatch.setenv("POSTDATE_PORT", "8456")
    config = Config.load()
    assert (config.port, config.flush) == (8456, "sync")


def test_a_misspelt_variable_is_told_with_its_nearest_neighbour() -> None:
    given = {"POSTDATE_FLSH": "sync", "PATH": "/bin", "POSTDATE_ENV_FILE": ""}
    (sentence,) = misspelt_variables(given)
    assert "POSTDATE_FLSH" in sentence
    assert "did you mean POSTDATE_FLUSH?" in sentence


def test_a_misspelt_variable_of_the_env_file_is_told_as_well(tmp_path: Path) -> None:
    env_file = tmp_path / "settings.env"
    env_file.write_text("POSTDATE_PORT=8123\nexport POSTDATE_FLSH=sync\nOTHER=1\n")
    (sentence,) = misspelt_variables({"POSTDATE_ENV_FILE": str(env_file)})
    assert "did you mean POSTDATE_FLUSH?" in sentence
    assert misspelt_variables({"POSTDATE_ENV_FILE": str(tmp_path / "none.env")}) == []


def test_a_generated_key_is_kept_for_its_owner_only_and_stays_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    key = read_or_make_secret(folder, "secret_key")
    assert len(key) >= 50
    assert read_or_make_secret(folder, "secret_key") == key
    assert stat.S_IMODE((folder / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == ["secret_key"]


def test_a_secret_that_another_process_made_first_wins(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "secret_key"
    assert write_once(path, "first")
    assert not write_once(path, "second")
    assert path.read_text() == "first\n"


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("1kB", 1000),
        ("1KiB", 1024),
        (" 2 GiB ", 2 << 30),
        ("3MB", 3_000_000),
    ],
)
def test_a_size_is_read_with_its_unit(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "-1", "1.5GB", "GiB", "1 parsec", "٣"])
def test_what_is_no_size_is_not_understood(text: str) -> None:
    assert parse_bytes(text) is None
