"""Plate cameras over HTTP: those whose stream is pulled, and those that push to a listener.

Messages of cameras are parsed by pure functions, one file per make. Which vehicle stands on a loop, and whether its
plate may pass, is not decided here.
"""
