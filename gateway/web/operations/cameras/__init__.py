"""Cameras, and watching them live."""
