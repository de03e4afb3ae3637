"""The synchronous client, made from `postdate.client.aio`: change that, not this."""
