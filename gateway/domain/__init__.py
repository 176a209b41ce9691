"""Pure values and rules: credentials, the access decision, events, passages, footage, commands, errors.

Nothing here awaits, opens a file, or reads a clock.
"""
