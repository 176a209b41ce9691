"""OSDP readers over libosdp: one panel per line, in a process of its own.

Why a process: libosdp's `refresh()` holds the interpreter lock from begin to end, its logger writes to the standard
streams by itself, and its C code parses what whoever reaches the cable at the gate sends. In a child none of that can
hold up or end the gateway.

The gateway's side is `line` (the child's owner) and `reader` (one per device). The child's side is `line_process`, with
`panel` around libosdp, `channel` for the bytes, `replies` and `showing`, which are pure. `messages` is what both say.
`provisioning` gives a reader its key. No other package imports osdp.
"""
