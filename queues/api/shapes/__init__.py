"""Shapes are what requests and answers look like: msgspec structs, of which the schema is made."""
