"""Lanes: the pure machine of one way for vehicles, and the runner that gives it a life. No HTTP, no SQL."""

from gateway.lanes.board import Board, DeviceSnapshot, LaneSnapshot, Phase, PointSnapshot
from gateway.lanes.lanes import Lanes

__all__ = ["Board", "DeviceSnapshot", "LaneSnapshot", "Lanes", "Phase", "PointSnapshot"]
