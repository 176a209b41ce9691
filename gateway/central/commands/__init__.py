"""Commands to the site's gates that central gives."""
