"""Addressing: which server, with which key, from the arguments or from the environment."""

import os
from dataclasses import dataclass

from postdate.client.errors import PostdateError

URL_VARIABLE, KEY_VARIABLE = "POSTDATE_URL", "POSTDATE_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8000"
#: Connections that are kept open and that may be open at once.
CONNECTIONS_MAX = 100


class NotConfigured(PostdateError):
    """Neither an argument nor the environment says what is needed."""


class AddressInvalid(NotConfigured):
    """What is to be the server's address is none."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server and the key to it."""

    #: Up to and without `/api/v1`, no slash at the end.
    url: str
    api_key: str

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {
            "Authorization": f"Bearer {self.api_key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "postdate-python",
        }


def address_of(url: str | None, api_key: str | None) -> Address:
    """The address; what is None comes from POSTDATE_URL and POSTDATE_API_KEY."""
    found_url = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    if not found_url.startswith(("http://", "https://")):
        told = f"{found_url!r} is not an address: write http:// or https:// before it"
        raise AddressInvalid(told)
    found_key = api_key or os.environ.get(KEY_VARIABLE)
    if not found_key:
        raise NotConfigured(f"there is no API key: set {KEY_VARIABLE}")
    if not found_key.isascii() or not found_key.isprintable():
        raise NotConfigured("the API key holds characters that no key has")
    return Address(found_url.rstrip("/"), found_key)
