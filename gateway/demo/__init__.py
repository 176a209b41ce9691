"""A simulated site: gates, readers, cameras and central. Used by the demo and by the tests."""
