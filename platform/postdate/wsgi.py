"""The WSGI entry point: `granian --interface wsgi postdate.wsgi:application`."""

import gc
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "postdate.settings")

_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Django's answer; one that is whole goes out as a list, which granian sends in one piece."""
    response = _django(environ, start_response)
    if getattr(response, "streaming", True):
        return response
    content: bytes = response.content  # type: ignore[attr-defined]
    response.close()
    return [content]


from postdate import wiring  # noqa: E402 (once the applications are loaded)
from postdate.departure import arrange_departure  # noqa: E402

arrange_departure(on_stop=wiring.stop_waiting, on_end=wiring.close)
# With its addresses, all that answers is imported. It stays, so the collector need not walk it
# again and again: that took a sixth of a batch's time.
import_module(settings.ROOT_URLCONF)
gc.collect()
gc.freeze()
