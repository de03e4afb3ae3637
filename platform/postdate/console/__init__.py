"""The console: what operators see and steer, inside Django's admin site.

It stands over every app, so it lives in the project: pages read through selectors and act through
services, as the REST API does, and draw no conclusion of their own.
"""
