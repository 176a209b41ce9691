"""Accounts, sessions and keys of programs."""
