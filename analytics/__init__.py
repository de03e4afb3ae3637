"""What happened: reports computed on Spark from the CommitLog.

`log` reads the log with numpy, `datasource` gives it to Spark, `partials` keeps the facts of its
ranges, `transforms` and `jobs` make reports of them. These know no Django; models, services and
pages beside them do.
"""
