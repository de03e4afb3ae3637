"""A real Chromium before a real platform; a console error or a refused script fails the test."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.browsing import PASSWORD, Visitor, chromium, fill
from tests.support.platforms import Running, running_platform

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing")
    folder: Path = tmp_path_factory.mktemp("console")
    settings = {"POSTDATE_ADMIN_PASSWORD": PASSWORD, "POSTDATE_ENV_FILE": ""}
    with running_platform(folder, **settings) as platform:
        fill(platform)
        yield platform


@pytest.fixture(scope="session")
def browser(running: Running) -> Iterator[Browser]:
    del running  # Only its being there counts.
    assert CHROMIUM is not None
    with chromium(CHROMIUM) as driven:
        yield driven


@pytest.fixture(scope="session")
def administrator(browser: Browser, running: Running) -> Iterator[Visitor]:
    visitor = Visitor(browser, running)
    visitor.log_in()
    yield visitor
    visitor.close()


@pytest.fixture
def fresh(browser: Browser, running: Running) -> Iterator[Callable[..., Visitor]]:
    """Makes windows of people who were never here."""
    made: list[Visitor] = []

    def make(**how: Any) -> Visitor:
        made.append(Visitor(browser, running, **how))
        return made[-1]

    yield make
    for visitor in made:
        visitor.close()


@pytest.fixture
def visitor(administrator: Visitor) -> Iterator[Visitor]:
    administrator.errors.clear()
    yield administrator
    assert administrator.errors == []
