"""The command line `postdate`: the client for people, in tables, and for scripts, in JSON."""
