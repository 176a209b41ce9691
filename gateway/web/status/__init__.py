"""The status page: one HTML page with its JavaScript modules, its stream of snapshots, and its own operations."""
