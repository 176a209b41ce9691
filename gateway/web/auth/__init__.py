"""Accounts, sign-in, sessions and permissions."""
