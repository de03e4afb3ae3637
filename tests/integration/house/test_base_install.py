"""The package without its extras: client and command line work, and nothing of the server is there.

The environment holds the wheel as it would be published and, from the environment that runs the
tests, exactly what the wheel's own requirements without extras lead to. So it needs no network.
"""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.crash  # it builds and starts processes of its own

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(
        [*command, "--directory", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the base alone."""
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    (installed,) = site.glob("postdate-*.dist-info")
    for one in needed_by(Distribution.at(installed)).values():
        link_into(site, one)
    return folder / "bin" / "python"


def needed_by(root: Distribution) -> dict[str, Distribution]:
    """Everything that it requires without extras, directly or not."""
    found: dict[str, Distribution] = {}
    unseen = list(requirements_of(root))
    while unseen:
        requirement = unseen.pop()
        if requirement.name not in found:
            found[requirement.name] = distribution(requirement.name)
            unseen += requirements_of(found[requirement.name])
    return found


def requirements_of(one: Distribution) -> Iterator[Requirement]:
    for line in one.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def link_into(site: Path, one: Distribution) -> None:
    for file in one.files or []:
        top = Path(file.parts[0])
        if top.name not in ("..", "__pycache__") and not (site / top).exists():
            (site / top).symlink_to(Path(str(one.locate_file(top))).resolve())


def run(python: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name == "PATH"}
    return subprocess.run(
        [python, "-I", *arguments], capture_output=True, text=True, env=environment, cwd="/"
    )


def test_the_wheel_asks_for_four_packages_and_has_the_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        text = packed.read(metadata).decode()
    asked = [line for line in text.splitlines() if line.startswith("Requires-Dist")]
    base = sorted(
        Requirement(line.partition(": ")[2]).name for line in asked if "extra" not in line
    )
    assert base == ["httpx", "msgspec", "rich", "typer"]
    extras = {line.partition(": ")[2] for line in text.splitlines() if "Provides-Extra" in line}
    assert extras == {"server", "analytics"}
    assert "postdate/client/__init__.py" in names
    assert not [name for name in names if name.startswith(("tests/", "platform/"))]


@pytest.mark.parametrize("package", ["django", "numpy", "celery", "rest_framework"])
def test_the_environment_has_nothing_of_the_server(python: Path, package: str) -> None:
    assert "ModuleNotFoundError" in run(python, "-c", f"import {package}").stderr


def test_the_package_itself_imports_nothing(python: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); import postdate; print(set(sys.modules) - before)"
    )
    assert run(python, "-c", code).stdout.strip() == "{'postdate'}"


def test_the_client_imports_and_says_that_nobody_answers(python: Path) -> None:
    code = (
        "from postdate.client import AsyncClient, AsyncConsumer, Client, Consumer, Patience,"
        " ConnectionFailed\n"
        "with Client('http://127.0.0.1:1', 'k' * 32, patience=Patience(total_s=0)) as client:\n"
        "    try:\n"
        "        client.send('orders', 'x')\n"
        "    except ConnectionFailed:\n"
        "        print('nobody')\n"
    )
    done = run(python, "-c", code)
    assert done.stdout.strip() == "nobody", done.stderr


def test_the_command_line_works_and_verify_says_what_it_lacks(python: Path) -> None:
    assert "deliver-now" in run(python, "-m", "postdate.cli", "--help").stdout
    done = run(python, "-m", "postdate.cli", "--url", "http://127.0.0.1:1", "--api-key", "k" * 32,
               "--patience", "0", "levels")  # fmt: skip
    assert done.returncode == 5
    done = run(python, "-m", "postdate.cli", "verify", "/nowhere")
    assert done.returncode == 8
    assert "postdate[server]" in done.stderr
