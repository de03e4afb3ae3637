"""What the apps' own pages in the console need of it; the console itself is `postdate.console`."""
