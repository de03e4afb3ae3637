"""The Django project of Postdate: settings, URLs, Celery app, wiring and supervisor.

The only package that chooses implementations; it imports every other one, and none imports it.
"""
