"""`manage.py bootstrap`: bring the control plane up to date, and make what a first run needs.

Migrations, the first administrator, the first API key. What is generated is printed once, with
lines to paste that send a message and receive it. Repeating it changes nothing.
"""

from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from queues.services.bootstrap import Bootstrapped, bootstrap
from queues.store.disk import Disk
from queues.store.errors import StoreUnsupported
from queues.store.opening import refuse_foreign
from queues.store.resizing import check_timer_sizes

TRY_IT = """
Once it says that Postdate is ready, try it from another terminal. A group that will receive:
  curl -sS -X PUT {api}/groups/hello -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"subscriptions": [{{"topic": "greetings", "tags": "*"}}]}}'
a message due in five seconds:
  curl -sS {api}/topics/greetings/messages -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"body": "Hello from the past", "delay": "5s"}}'
and the one who waits for it:
  curl -sS {api}/groups/hello/receive -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"wait_seconds": 20}}'
"""  # noqa: E501 (lines to paste must be one line each)


class Command(BaseCommand):
    """Migrate, and make the first administrator and API key."""

    help = "Migrate the control plane and make the first administrator and API key, if missing."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Do it, and print what is to be known once."""
        config = settings.POSTDATE
        try:
            config.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"POSTDATE_DATA_DIR cannot be made: {error}") from error
        self._check_store(config)
        call_command("migrate", interactive=False, verbosity=0)
        made = bootstrap(
            username=config.admin_username,
            password=config.admin_password,
            secret=config.bootstrap_api_key,
        )
        self.stdout.write(self._account(made))

    def _check_store(self, config: Any) -> None:
        """Refuse here, in words, what every process would refuse."""
        wanted = import_module(settings.POSTDATE_WIRING).store_settings(config).sizes
        try:
            refuse_foreign(Disk(), config.store_dir)
            check_timer_sizes(Disk(), config.store_dir, wanted)
        except StoreUnsupported as error:
            raise CommandError(error.message) from error

    def _account(self, made: Bootstrapped) -> str:
        config = settings.POSTDATE
        address = config.public_url or f"http://{config.host}:{config.port}"
        lines = ["", f"  Console   {address}/admin/"]
        if made.admin_created:
            shown = f"{made.password}  (shown only now)" if made.password else "as configured"
            lines.append(f"  Login     {config.admin_username}  password: {shown}")
        if made.key_created:
            shown = f"{made.secret}  (shown only now)" if made.secret else "as configured"
            lines.append(f"  API key   {shown}")
        if made.key_created:
            key = made.secret or "<your key>"
            lines.append(TRY_IT.format(api=f"{address}/api/v1", key=key))
        return "\n".join(lines)
