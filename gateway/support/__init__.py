"""The support bundle: everything that helps whoever is called, and no secret."""
