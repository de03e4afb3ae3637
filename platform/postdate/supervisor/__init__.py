"""The supervisor: one small process that starts, watches and stops the others.

`python -m postdate.supervisor` (what `make up` runs) starts the web server and two schedulers,
starts again whatever dies, kills whatever holds a lock and stands still, and on SIGTERM or Ctrl-C
stops all within ten seconds and exits 0. It does not load the application.
"""
