"""Segments, camera events and the evidence that people add to them."""
