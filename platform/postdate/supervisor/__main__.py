"""`python -m postdate.supervisor`: run the platform on this machine until told to stop."""

import contextlib
import errno
import http.client
import logging
import os
import socket
import sys

from postdate.config import Config, ConfigInvalid, misspelt_variables
from postdate.supervisor.plans import plan_analytics_install, plan_children
from postdate.supervisor.progress import progress_reader
from postdate.supervisor.supervisor import Supervisor

logger = logging.getLogger("postdate.supervisor")


class _Announcement:
    """Says once that the server answers, and only then lets the reports' packages install."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._is_made = False

    def look(self, supervisor: Supervisor) -> None:
        """Ask the server whether it is alive, until it is."""
        if self._is_made or not _answers(self._config):
            return
        self._is_made = True
        logger.info("Postdate is ready at %s (stop it with Ctrl-C)", _address(self._config))
        plan = plan_analytics_install(self._config)
        if plan is not None:
            logger.info("the packages of reports are being installed; see %s", plan.log_path)
            supervisor.add(plan)


def main() -> None:
    """Check what would fail, then supervise."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s")
    try:
        config = Config.load()
    except ConfigInvalid as error:
        sys.exit(str(error))
    for sentence in misspelt_variables(os.environ):
        logger.warning("%s", sentence)
    refusal = refusal_to_listen(config)
    if refusal is not None:
        sys.exit(refusal)
    supervisor = Supervisor(plan_children(config), progress_reader(config.store_dir))
    supervisor.run(_Announcement(config).look)


def refusal_to_listen(config: Config) -> str | None:
    """Why nothing can listen at the address, and what to do; None where it can.

    Asked before: the web server itself would share another's port silently.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.host, config.port))
        except (OSError, UnicodeError) as error:  # The latter: it cannot be a host's name.
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                return (
                    f"Port {config.port} of {config.host} is in use. Stop what uses it, "
                    "or choose another: POSTDATE_PORT=8001 make up"
                )
            reason = getattr(error, "strerror", None) or error
            return (
                f"Nothing can listen at port {config.port} of {config.host} ({reason}). Set "
                "POSTDATE_HOST to an address of this machine, and POSTDATE_PORT to a port of yours."
            )
    return None


def _answers(config: Config) -> bool:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)  # noqa: S104
    with contextlib.closing(http.client.HTTPConnection(host, config.port, timeout=1)) as asked:
        try:
            asked.request("GET", "/healthz")
            return asked.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False


def _address(config: Config) -> str:
    return config.public_url or f"http://{config.host}:{config.port}"


if __name__ == "__main__":
    main()
