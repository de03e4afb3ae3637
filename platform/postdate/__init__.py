"""Postdate: the Django project and supervisor of the server, its client and its command line.

It imports nothing, so that `postdate.client` and `postdate.cli` work without the server.
"""
