"""Plate cameras over HTTP: those that are asked for a stream, and those that push to a listener of ours.

What a camera says is read by pure functions, one file per make. Which vehicle stands on a loop, and whether its plate
may pass, is not decided here.
"""
