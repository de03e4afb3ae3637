"""The tree: what may be where, and what it may be called."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("platform/postdate", "queues", "scheduler", "analytics")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "misc", "base"}


def product_modules() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
    ]


def all_modules() -> list[Path]:
    folders = (*PACKAGES, "tests", "benchmarks")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def test_platform_is_a_source_root_with_one_package_and_never_a_package_itself() -> None:
    folder = ROOT / "platform"
    assert not (folder / "__init__.py").exists()
    entries = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
    assert sorted(entries) == ["README.md", "postdate"]


def test_the_standard_librarys_platform_module_still_wins() -> None:
    code = "import platform; print(platform.python_version())"
    path = f"{ROOT}:{ROOT / 'platform'}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.strip() == ".".join(map(str, sys.version_info[:3]))


def test_no_file_is_longer_than_the_ceiling() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in all_modules()
        if "migrations" not in path.parts
        and (count := path.read_text().count("\n")) > FILE_LINES_MAX
    }
    assert long == {}


def test_no_function_is_longer_than_the_ceiling() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": count
        for path in product_modules()
        for node in functions(path)
        if (count := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert long == {}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_name_in_the_tree_says_nothing() -> None:
    parts = {
        part for path in product_modules() for part in path.relative_to(ROOT).with_suffix("").parts
    }
    assert parts & VAGUE_NAMES == set()


def test_every_module_begins_with_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in product_modules()
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_imports_point_one_way() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
