"""The parts that every process of the gateway uses: time, supervision, logs, files and sockets."""
