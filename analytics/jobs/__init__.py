"""Spark jobs: read, transform, write. They know neither Django nor the platform's settings."""
