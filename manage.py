#!/usr/bin/env python
"""The command line of Postdate: `python manage.py <command>`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> None:
    """Run one management command under `postdate.settings`."""
    # Appended, not inserted: nothing in platform/ can then shadow a module of the standard library.
    sys.path.append(str(ROOT / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "postdate.settings")
    from django.conf import settings
    from django.core.management import execute_from_command_line

    from postdate.config import ConfigInvalid

    try:
        settings.INSTALLED_APPS  # noqa: B018 (reads the configuration, to refuse it in words)
    except ConfigInvalid as error:
        sys.exit(str(error))
    try:
        execute_from_command_line(sys.argv)
    finally:
        # A command leaves no store behind that looks as if a process had died in it.
        wiring = sys.modules.get("postdate.wiring")
        if wiring is not None:
            wiring.close()


if __name__ == "__main__":
    main()
