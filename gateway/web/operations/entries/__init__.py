"""Parking entries."""
