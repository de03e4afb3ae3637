"""The ASGI entry point, for servers that speak nothing else.

WSGI is what `make up` runs: the same views are four to five times faster there.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "postdate.settings")

application = get_asgi_application()
