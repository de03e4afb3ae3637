"""The configuration: what the environment may say, and what is answered to what it may not."""

import stat
from pathlib import Path

import pytest

from postdate.config import Config, ConfigInvalid, misspelt_variables
from postdate.secrets_folder import read_or_make_secret, write_once
from postdate.sizes import parse_bytes


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


@pytest.mark.parametrize("text", ["1s soon", "1s  5s", "1s,5s", "1w"])
def test_a_level_table_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("POSTDATE_DELAY_LEVELS", text)
    with pytest.raises(ConfigInvalid, match=r"POSTDATE_DELAY_LEVELS .*one space between them"):
        Config.load()


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
    (sentence,) = misspelt_variables({"POSTDATE_FLSH": "sync", "PATH": "/bin"})
    assert "POSTDATE_FLSH" in sentence
    assert "did you mean POSTDATE_FLUSH?" in sentence


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
