"""What happened: reports computed on Spark from the CommitLog.

This is a named, empty room. The Spark data source, the lateness report and its schedule move in
with capability E; until then nothing here runs.
"""
