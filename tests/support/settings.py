"""The product's settings over a data directory of its own, made for one test process.

What the developer has in the environment or in `.env` has no say here, so a test means the same on
every machine.
"""

import atexit
import os
import shutil
import tempfile

for _name in list(os.environ):
    if _name.startswith("POSTDATE_") or _name in {"DATABASE_URL", "CELERY_BROKER_URL"}:
        del os.environ[_name]
_DATA_DIR = tempfile.mkdtemp(prefix="postdate-tests-")
atexit.register(shutil.rmtree, _DATA_DIR, ignore_errors=True)
os.environ["POSTDATE_ENV_FILE"] = ""
os.environ["POSTDATE_DATA_DIR"] = _DATA_DIR

from postdate.settings import *  # noqa: E402, F403 (after the environment is set)

# Django's own test client logs in without a request; the test of the lock switches it on.
AXES_ENABLED = False
# The slow hash guards real passwords; those of tests open nothing.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
