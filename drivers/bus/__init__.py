"""A line that several devices share: one owner, one transaction at a time."""
