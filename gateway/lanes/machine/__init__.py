"""The lane machine: pure. One module per concern."""
