"""OSDP readers over libosdp: one panel per line, in a process of its own.

Why a process: libosdp's C code parses what whoever reaches the cable at the gate sends, holds the interpreter lock from
begin to end of `refresh()`, and writes its log to the standard streams by itself, waiting for whoever reads them. In a
child a fault of it costs one line a second; in a thread it would cost the gateway. The loop's lag does not decide: with
8 readers on a dead, slow, hung or noisy line it stayed within the machine's own noise either way (p99 0.6 to 4.9 ms
with the process, 0.8 to 3.0 ms with a thread, 0.9 to 3.6 ms beside nothing, on two busy cores;
`make bench TESTS=tests/benchmarks/test_osdp_lag.py`).

The gateway's side is `line` (the child's owner) and `reader` (one per device). The child's side is `line_process`, with
`panel` around libosdp, `channel` for the bytes, `replies` and `showing`, which are pure. `messages` is what both say.
`provisioning` gives a reader its key. No other package imports osdp.
"""
