"""Plate cameras over HTTP: some have a stream that the gateway pulls, others push to a listener.

Pure functions parse the messages of cameras, in one module for each make. Which vehicle stands on a loop, and whether
its plate may pass, is not decided here.
"""
