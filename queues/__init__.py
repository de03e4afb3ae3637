"""What is kept: topics, groups and messages, and the store that keeps them."""
