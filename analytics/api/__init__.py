"""Reports over REST."""
