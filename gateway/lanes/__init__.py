"""Lanes: the pure machine of one way for vehicles, and the runner that does its I/O. No HTTP, no SQL.

A card on its way from the reader to the row; each step carries what the next needs:

| step                       | type              | adds                                                         |
|----------------------------|-------------------|--------------------------------------------------------------|
| the driver reads it        | `CardPresented`   | the bits as they were sent                                   |
| the intake finds its lane  | `CardRead`        | the `Credential`: bits the right way round, under its aliases |
| the machine finds its car  | `Visit`           | arrival, side and reader                                     |
| the machine asks           | `Decide`          | direction, PIN and plates of the same vehicle                |
| the rules answer           | `Decided`         | the `Decision` with card, holder, reasons and trace          |
| the vehicle has passed     | `Passage`         | outcome and both ends of its time, for the journal's `Entry` |
"""

from gateway.lanes.lanes import Lanes
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, Phase, PointSnapshot

__all__ = ["DeviceSnapshot", "LaneSnapshot", "Lanes", "Phase", "PointSnapshot"]
