"""The asynchronous client: what is written by hand; `postdate.client.sync` is made from it.

Change a file here, then run `python tests/support/twins.py`; a test compares the two.
"""
