"""Records that central also keeps, and the writes that wait for it."""
