"""Gates and readers that speak lines of text or binary frames over a serial line, described by profiles."""
