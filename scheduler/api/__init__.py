"""The schedule as REST: levels, wheel and loops."""
