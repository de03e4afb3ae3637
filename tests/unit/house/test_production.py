"""Production settings: what Django's own check of a deployment says of them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def manage(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": os.environ["PATH"],
        "POSTDATE_ENV_FILE": "",
        "POSTDATE_DATA_DIR": str(folder),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_behind_a_public_https_address_the_deployment_check_is_clean(tmp_path: Path) -> None:
    done = manage(
        tmp_path,
        "check",
        "--deploy",
        "--fail-level=WARNING",
        POSTDATE_PUBLIC_URL="https://postdate.example.com",
    )
    assert done.returncode == 0, done.stderr


def test_a_wrong_variable_stops_a_command_in_words_not_in_a_traceback(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", POSTDATE_PORT="eighty")
    assert done.returncode == 1
    assert "POSTDATE_PORT" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_closes_the_store_that_it_opened(tmp_path: Path) -> None:
    sizes = {"POSTDATE_STORE_SIZES": "compact", "POSTDATE_MIN_FREE_BYTES": "0"}
    opened = "from postdate import wiring; wiring.get_store().flush(); wiring.get_consuming()"
    done = manage(tmp_path, "shell", "-c", opened, **sizes)
    assert done.returncode == 0, done.stderr
    (store,) = {path.parent for path in tmp_path.rglob("commitlog")}
    assert not (store / "abort").exists()
    # It opens the store before it learns that there is no database.
    done = manage(tmp_path, "rocketmq_export", str(tmp_path / "out"), **sizes)
    assert (done.returncode, "bootstrap" in done.stderr) == (2, True), done.stderr
    assert not (store / "abort").exists()
