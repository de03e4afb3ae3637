"""Services write: each is one verb and its noun, with keyword arguments and plain values."""
