"""The library that speaks to devices: gates, readers, plate cameras and video sources.

A library below `gateway`, which it never imports. Here live frames (pure), sessions and drivers, one folder per family;
families do not import each other. Decisions about vehicles, storage and people's permissions do not live here.
"""
