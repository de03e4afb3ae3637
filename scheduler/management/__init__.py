"""Management of the scheduler."""
