"""The link to central: its client, lists pulled from it, the outbox sent to it, relayed requests and commands."""
