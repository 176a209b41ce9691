"""In step with central: its client, what is pulled down, and the outbox that goes up."""
