"""The line to central: its client, lists pulled down, the outbox sent up, relayed requests and commands."""
