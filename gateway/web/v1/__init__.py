"""The operations of the `/v1` interface that the gateway serves itself, one file per family."""
