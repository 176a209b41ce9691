"""Connections, request bodies, files and errors over HTTP."""
