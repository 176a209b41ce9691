"""The register of accounts, roles and keys, which `edge-gateway users` changes with or without a running gateway.

The database has one writer: the gateway, while it runs. So the command asks the gateway for the change over the local
socket (`gateway.web.local_commands`), and the gateway's memory and sessions follow at once. While no gateway runs, the
command takes the lock of the data folder itself and makes the change with the same code.
"""
