"""SQLite files: connections, group commit, recovery and migrations."""
