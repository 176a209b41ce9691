"""A shared line: one owner, one transaction at a time."""
