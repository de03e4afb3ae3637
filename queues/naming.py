"""A name is what topics, groups, tags, keys and properties may be called, by RocketMQ's rules.

Names of topics and groups: letters, digits, `_` and `-` of ASCII; what RocketMQ keeps for itself is
refused apart (`name_reserved`), so that a client can tell a typing error from a system's name.
"""

import re
from collections.abc import Mapping, Sequence

from queues.codes import Code
from queues.limits import (
    GROUP_NAME_MAX,
    IDEMPOTENCY_KEY_CHARACTERS_MAX,
    KEY_CHARACTERS_MAX,
    KEYS_BYTES_MAX,
    SHARDING_KEY_CHARACTERS_MAX,
    TAG_CHARACTERS_MAX,
    TOPIC_NAME_MAX,
)
from queues.problems import Problem
from queues.store.limits import KEYS_MAX, USER_PROPERTIES_BYTES_MAX, USER_PROPERTIES_MAX
from queues.store.names import is_system_topic
from queues.store.properties import is_reserved

_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SYSTEM_GROUPS = frozenset(
    {"DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER",
     "FILTERSRV_CONSUMER", "__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP",
     "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
     "CID_ONSAPI_PULL"}
)  # fmt: skip
_SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
#: What would end a name, a value or a record inside the properties (spec 1.1).
_SEPARATORS = re.compile("[\x00\x01\x02]")
_NOT_IN_TAGS = re.compile(r"[\s|*\x00-\x1f\x7f]")
_NOT_IN_KEYS = re.compile(r"[\s\x00-\x1f\x7f]")


def check_topic_name(name: str) -> None:
    """Raise `name_reserved` or `name_invalid` unless a user's topic may be called so."""
    if "%" in name or is_system_topic(name):
        raise Problem(Code.NAME_RESERVED, f"{_shown(name)} belongs to the system.")
    _check_name(name, TOPIC_NAME_MAX)


def check_group_name(name: str) -> None:
    """Raise `name_reserved` or `name_invalid` unless a user's group may be called so."""
    if "%" in name or name in _SYSTEM_GROUPS or name.upper().startswith(_SYSTEM_GROUP_PREFIX):
        raise Problem(Code.NAME_RESERVED, f"{_shown(name)} belongs to the system.")
    if is_system_topic(name):
        raise Problem(Code.NAME_RESERVED, f"{_shown(name)} belongs to the system.")
    _check_name(name, GROUP_NAME_MAX)


def is_name(text: str) -> bool:
    """Whether a topic or group can be called so at all; what cannot is not worth a query."""
    return len(text) <= TOPIC_NAME_MAX and _NAME.fullmatch(text) is not None


def check_tag(tag: str) -> None:
    """Raise `tag_invalid` for a tag that no filter could name."""
    if not 0 < len(tag) <= TAG_CHARACTERS_MAX or _NOT_IN_TAGS.search(tag):
        detail = f"A tag has 1 to {TAG_CHARACTERS_MAX} characters, none of them a space, | or *."
        raise Problem(Code.TAG_INVALID, detail, pointer="/tag")


def check_keys(keys: Sequence[str]) -> None:
    """Raise `key_invalid` for a key that would be two once they are joined by spaces."""
    if len(keys) > KEYS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, f"At most {KEYS_MAX} keys.", pointer="/keys")
    characters = 0
    for position, key in enumerate(keys):
        if not 0 < len(key) <= KEY_CHARACTERS_MAX or _NOT_IN_KEYS.search(key):
            detail = f"A key has 1 to {KEY_CHARACTERS_MAX} characters and no space."
            raise Problem(Code.KEY_INVALID, detail, pointer=f"/keys/{position}")
        characters += len(key)
    # A character has up to four bytes, so few characters need no counting.
    if characters * 4 > KEYS_BYTES_MAX and len("".join(keys).encode()) > KEYS_BYTES_MAX:
        detail = f"The keys of a message have at most {KEYS_BYTES_MAX} bytes together."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/keys")


def check_sharding_key(key: str) -> None:
    """Raise `key_invalid` for a sharding key that a record cannot carry."""
    if not 0 < len(key) <= SHARDING_KEY_CHARACTERS_MAX or _SEPARATORS.search(key):
        detail = f"A sharding key has 1 to {SHARDING_KEY_CHARACTERS_MAX} characters."
        raise Problem(Code.KEY_INVALID, detail, pointer="/sharding_key")


def check_idempotency_key(key: str, pointer: str) -> None:
    """Raise `idempotency_key_invalid` for a key that a header could not carry."""
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not (
        key.isascii() and key.isprintable() and key == key.strip()
    ):
        detail = (
            f"An idempotency key has 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII "
            "characters, no space at either end."
        )
        raise Problem(Code.IDEMPOTENCY_KEY_INVALID, detail, pointer=pointer)


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise `property_reserved`, `property_invalid` or `properties_too_large`."""
    if len(properties) > USER_PROPERTIES_MAX:
        raise Problem(
            Code.PROPERTIES_TOO_LARGE,
            f"At most {USER_PROPERTIES_MAX} properties.",
            pointer="/properties",
        )
    size_bytes = 0
    for name, value in properties.items():
        if is_reserved(name):
            detail = f"{_shown(name)} is a name that the system uses."
            raise Problem(Code.PROPERTY_RESERVED, detail, pointer=_property_pointer(name))
        if not name.strip() or not value.strip() or _SEPARATORS.search(name + value):
            detail = "A property's name and value are not blank and hold no NUL, 0x01 or 0x02."
            raise Problem(Code.PROPERTY_INVALID, detail, pointer=_property_pointer(name))
        size_bytes += len(name.encode()) + len(value.encode()) + 2
    if size_bytes > USER_PROPERTIES_BYTES_MAX:
        raise Problem(
            Code.PROPERTIES_TOO_LARGE,
            f"{size_bytes} bytes; at most {USER_PROPERTIES_BYTES_MAX}.",
            pointer="/properties",
        )


def _check_name(name: str, characters_max: int) -> None:
    if len(name) > characters_max or not _NAME.fullmatch(name):
        detail = f"A name has 1 to {characters_max} letters, digits, _ or -."
        raise Problem(Code.NAME_INVALID, detail)


def _shown(name: str) -> str:
    return repr(name[:TOPIC_NAME_MAX])


def _property_pointer(name: str) -> str:
    return "/properties/" + name[:TOPIC_NAME_MAX].replace("~", "~0").replace("/", "~1")
