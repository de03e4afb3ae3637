"""The synchronous client is what its asynchronous twin says."""

import inspect

from postdate.client.aio.client import AsyncClient
from postdate.client.sync.client import Client
from tests.support.twins import SYNC, twins


def test_the_synchronous_client_is_made_from_the_asynchronous_one() -> None:
    made = twins()
    stale = [path.name for path, text in made.items() if path.read_text() != text]
    assert stale == [], "run tests/support/twins.py"
    assert sorted(SYNC.glob("*.py")) == sorted(made)


def test_both_clients_offer_the_same() -> None:
    def names(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    assert names(Client) == names(AsyncClient)
