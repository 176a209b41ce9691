"""The interface over HTTP and the status page. Reads snapshots and posts commands; never touches a driver."""
