"""Records that central also has, and the writes that wait for central."""
