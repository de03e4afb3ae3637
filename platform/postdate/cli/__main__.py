"""`python -m postdate.cli` is the program `postdate`."""

from postdate.cli.app import main

main()
