"""OSDP readers over libosdp: one panel per line, in a process of its own.

Reasons for a process: libosdp's C code parses bytes from anyone who reaches the cable at the gate. It holds the
interpreter lock during all of `refresh()`. It writes its log to the standard streams and blocks until somebody reads
them. When it fails in a child, one line is down for a second; in a thread, the gateway would be down. The delay of the
event loop is no reason: with 8 readers on a dead, slow, hung or noisy line it was the same either way (p99 0.6 to
4.9 ms with the process, 0.8 to 3.0 ms with a thread, 0.9 to 3.6 ms without OSDP, on two busy cores;
`make bench TESTS=tests/benchmarks/test_osdp_lag.py`).

The gateway's side is `line` (the child's owner, which also gives a reader its key) and `reader` (one per device). The
child's side is `line_process`, with `panel` around libosdp, `channel` for the bytes and the pure parsing of replies.
`messages` holds the messages between both sides. No other package imports libosdp.
"""
