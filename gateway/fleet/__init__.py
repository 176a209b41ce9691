"""The fleet: a connection to NATS servers, over which events go up, and commands and card notices come down.

Nothing here may delay a lane or the start. What waits for a server that is away, waits in the store.
"""
