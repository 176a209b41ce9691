"""The state of a lane's machine: a frozen type for each concern, with the transitions that make a new one.

Nothing outside this package makes a new part of the state; a test checks the sources for that.
"""
