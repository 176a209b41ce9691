"""The store: SQLite with one writer and group commit, one file per aggregate. Only this package knows SQL."""
