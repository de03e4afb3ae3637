"""Hosts in a record: an IPv4 or IPv6 address and a port of four bytes, written ``address:port``.

Example: ``encode_host("127.0.0.1:10911").hex() == "7f00000100002a9f"``.
"""

import ipaddress
from functools import lru_cache
from typing import Final

HOST_BYTES_V4: Final = 8
HOST_BYTES_V6: Final = 20

_PORT_BYTES: Final = 4
#: A store meets few hosts, and each comes back with every record.
_HOSTS_REMEMBERED: Final = 4096


@lru_cache(maxsize=_HOSTS_REMEMBERED)
def encode_host(host: str) -> bytes:
    """Return the host's 8 (IPv4) or 20 (IPv6) bytes; raise ``ValueError`` if it is none."""
    address, _, port = host.rpartition(":")
    packed = ipaddress.ip_address(address.strip("[]")).packed
    return packed + int(port).to_bytes(_PORT_BYTES, "big")


def decode_host(packed: bytes | memoryview) -> str:
    """Return ``address:port`` of the 8 or 20 bytes."""
    return _host_text(bytes(packed))


@lru_cache(maxsize=_HOSTS_REMEMBERED)
def _host_text(packed: bytes) -> str:
    address, port = packed[:-_PORT_BYTES], int.from_bytes(packed[-_PORT_BYTES:], "big")
    if len(packed) == HOST_BYTES_V4:
        return f"{ipaddress.IPv4Address(address)}:{port}"
    return f"[{ipaddress.IPv6Address(address)}]:{port}"
