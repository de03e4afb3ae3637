"""The RateLimit headers (draft-ietf-httpapi-ratelimit-headers-10): how a key's limits stand.

``RateLimit-Policy: "requests";q=100;w=10`` names a limit, how much it allows and over how many
seconds; ``RateLimit: "requests";r=42;t=6`` how much of it is left and when all of it is.
"""

from collections.abc import Iterable

from django.http import HttpResponse

from queues.store.allowances import Standing


def add_quota_headers(response: HttpResponse, standings: Iterable[Standing]) -> None:
    """Say how the limits stand; the last word on each counts."""
    last = {standing.name: standing for standing in standings}.values()
    if last:
        response.headers["RateLimit-Policy"] = ", ".join(
            f'"{one.name}";q={one.limit};w={one.window_s}' for one in last
        )
        response.headers["RateLimit"] = ", ".join(
            f'"{one.name}";r={one.remaining};t={one.reset_s}' for one in last
        )
