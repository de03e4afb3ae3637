"""A person's browser without a browser: Django's client, logged in to the console."""

from typing import Any

from django.contrib.auth.models import User
from django.test import Client


class Console:
    """A person's browser, and the API beside it."""

    def __init__(self, api: Any, person: User) -> None:
        self.api, self.client = api, Client()
        self.client.force_login(person)

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def text(self, path: str, **headers: str) -> str:
        answer = self.get(path, **headers)
        assert answer.status_code == 200
        return answer.content.decode()

    def post(self, path: str, **fields: Any) -> Any:
        return self.client.post(path, fields, follow=True)
