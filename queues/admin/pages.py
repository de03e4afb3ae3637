"""Who acts in the console, as the audit log names people."""

from django.http import HttpRequest


def acting(request: HttpRequest) -> str:
    """How the audit log names the person."""
    return f"user:{request.user.get_username()}"
