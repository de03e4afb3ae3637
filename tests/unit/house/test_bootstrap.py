"""`manage.py bootstrap`: what a first run makes and says, and what later runs leave alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": os.environ["PATH"],
        "POSTDATE_ENV_FILE": "",
        "POSTDATE_DATA_DIR": str(folder),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "manage.py", "bootstrap"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def bootstrap(folder: Path, **variables: str) -> str:
    done = run(folder, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_password_and_key_are_shown_by_the_first_run_only(tmp_path: Path) -> None:
    first = bootstrap(tmp_path)
    assert re.search(r"Login +admin +password: \S{12,}", first)
    key = re.search(r"API key +(pd_\S{32,})", first)
    assert key is not None
    assert f"Authorization: Bearer {key[1]}" in first
    second = bootstrap(tmp_path)
    assert "Console   http://127.0.0.1:8000/admin/" in second
    assert "password" not in second
    assert "API key" not in second


def test_what_the_operator_gave_is_taken_and_never_printed(tmp_path: Path) -> None:
    given_key, given_password = "k" * 40, "correct horse battery staple"
    said = bootstrap(
        tmp_path,
        POSTDATE_BOOTSTRAP_API_KEY=given_key,
        POSTDATE_ADMIN_USERNAME="operator",
        POSTDATE_ADMIN_PASSWORD=given_password,
        POSTDATE_PUBLIC_URL="https://postdate.example.com",
    )
    assert "operator" in said
    assert given_password not in said
    assert given_key not in said
    assert "Console   https://postdate.example.com/admin/" in said


@pytest.mark.parametrize("given", [{}, {"POSTDATE_SECRET_KEY": "k" * 50}], ids=["made", "given"])
def test_a_data_directory_that_cannot_be_made_is_refused_in_words(given: dict[str, str]) -> None:
    done = run(Path("/proc/postdate"), **given)
    assert done.returncode == 1
    assert "POSTDATE_DATA_DIR" in done.stderr
    assert "Traceback" not in done.stderr
