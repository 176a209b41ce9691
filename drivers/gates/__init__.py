"""Parts that all gate drivers share: polls, pulses, commands and profile parts."""
