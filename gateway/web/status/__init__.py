"""The status page: one HTML page with its modules, and the stream of snapshots that it shows."""
