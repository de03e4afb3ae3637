"""The table of scopes: every address, which scope opens it, and what a key's patterns leave out.

`docs/api/scopes.md` is this table as committed; `manage.py write_openapi` writes it. A test calls
every address with every scope and compares what comes back with the table.
"""

from collections.abc import Iterator

from queues.api.endpoint import CONSUME, INSPECT, MANAGE, SEND
from queues.api.openapi import described_endpoints

SCOPES = (SEND, CONSUME, INSPECT, MANAGE)
#: Words of the table.
YES, NO, OPEN = "yes", "403", "no key"
_HEAD = """\
# Scopes

Which scope of an API key opens which address: `yes`, or 403 `forbidden`. Without a valid key it is
401 `unauthorized`; where it says *no key*, none is needed. The last column says what a key is
answered whose patterns leave the topic, group or message out. Lists leave out what lies outside the
patterns.

This table is made of the server's own declarations, and a test tries all of it.

"""


def scope_rows() -> Iterator[tuple[str, ...]]:
    """Method, address, a word for each scope, and what is outside the patterns."""
    for path, method, endpoint in described_endpoints():
        allowed = endpoint.scopes
        words = [OPEN if allowed is None else YES if one in allowed else NO for one in SCOPES]
        yield (method, path, *words, "-" if allowed is None else _outside(path))


def _outside(path: str) -> str:
    """What an address is answered with that the key's patterns leave out."""
    if "{topic}" in path or "{group}" in path:
        return "403"
    return "404" if "{message_id}" in path else "-"


def scope_table() -> str:
    """The document."""
    head = ("Method", "Address", *(f"`{scope}`" for scope in SCOPES), "Outside the patterns")
    rows = [head, ("---",) * len(head)]
    rows += [(row[0], f"`{row[1]}`", *row[2:]) for row in scope_rows()]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
