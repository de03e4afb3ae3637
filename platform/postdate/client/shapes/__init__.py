"""Shapes are what the server answers, as msgspec structs.

A field that this client does not know is passed over, so that a newer server can say more. Times
come as `datetime` in UTC and beside it as milliseconds since 1970. Words such as `state` are plain
strings: a newer server may know more of them; `docs/client.md` lists those of today.
"""
