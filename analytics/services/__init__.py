"""Services write: runs of reports, and what starts them."""
