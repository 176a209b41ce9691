"""Lanes: the pure machine of one way for vehicles, and the runner that gives it a life. No HTTP, no SQL."""

from gateway.lanes.lanes import Lanes
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, Phase, PointSnapshot

__all__ = ["DeviceSnapshot", "LaneSnapshot", "Lanes", "Phase", "PointSnapshot"]
