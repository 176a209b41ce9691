"""Commands of central to the site's gates."""
