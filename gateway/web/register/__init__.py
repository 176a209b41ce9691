"""The register of accounts, roles and keys as `edge-gateway users` changes it, in a running gateway or beside one.

SQLite's file has one writer: the gateway, while it runs. So it makes the change itself, asked over a socket in its data
folder that only its own user and root can open, and what it keeps in memory and its sessions follow at once. While no
gateway runs, the command takes the folder's lock, as a gateway does, and makes the change with the same code.
"""
