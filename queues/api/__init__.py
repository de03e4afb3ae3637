"""The API's addresses, shapes and refusals: services and selectors as REST."""
