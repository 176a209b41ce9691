"""Forecast of the storage: the rate of new footage, the room left, and when it will be full. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.site import StorageSection

_GIGABYTE = 1_000_000_000
_DAY_SECONDS = 86_400.0
_HOURS_UP_TO_DAYS = 2.0
_FULL_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Use of the storage: bytes of footage and evidence, and bytes free on their disk."""

    footage: int
    free: int


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """Limits of the storage.

    Attributes:
        cap: the greatest number of bytes of footage.
        floor: the bytes that must stay free on the media folder's disk.
        continuous_days: the days after which footage of no event is deleted.
        transaction_days: the days for which footage of ordinary events is kept in any case, and then deleted.
        incident_days: the same for footage of incidents.
    """

    cap: int
    floor: int
    continuous_days: int = 30
    transaction_days: int = 90
    incident_days: int = 365

    @classmethod
    def of(cls, storage: StorageSection) -> StorageLimits:
        """Return the limits of the site file."""
        return cls(
            cap=int(storage.media_gigabytes * _GIGABYTE),
            floor=int(storage.free_floor_gigabytes * _GIGABYTE),
            continuous_days=storage.continuous_days,
            transaction_days=storage.transaction_days,
            incident_days=storage.incident_days,
        )


@dataclass(frozen=True, slots=True)
class StorageForecast:
    """The storage as seen from outside.

    Attributes:
        footage_bytes: the bytes of footage and evidence.
        cap_bytes: the greatest number of such bytes.
        free_bytes: the bytes free on their disk.
        floor_bytes: the bytes of them that must stay free.
        bytes_per_day: the recent rate of new footage.
        full_in_days: the days until the storage is full at that rate; None if it does not fill up or nothing comes in.
        text: the forecast in a few words.
        short: whether too much footage may not be deleted, or cameras pause already for lack of space.
    """

    footage_bytes: int
    cap_bytes: int
    free_bytes: int
    bytes_per_day: int
    full_in_days: float | None
    text: str
    short: bool
    floor_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Strain:
    """Shortage of storage.

    Attributes:
        pinned: whether there is too much footage and events keep all of it.
        paused: whether cameras pause for lack of space.
    """

    pinned: bool = False
    paused: bool = False


def forecast(
    use: StorageUse, limits: StorageLimits, *, seen_bytes: int, seen_seconds: float, strain: Strain
) -> StorageForecast:
    """Predict the storage for a rate of new footage of `seen_bytes` in `seen_seconds`."""
    per_day = int(seen_bytes / max(seen_seconds, 1.0) * _DAY_SECONDS)
    days, text = _expected(use, limits, per_day=per_day, strain=strain)
    return StorageForecast(
        footage_bytes=use.footage,
        cap_bytes=limits.cap,
        free_bytes=use.free,
        floor_bytes=limits.floor,
        bytes_per_day=per_day,
        full_in_days=None if days is None else round(days, 2),
        text=f"{use.footage / _GIGABYTE:.1f} GB, {text}",
        short=strain.pinned or strain.paused,
    )


def _expected(use: StorageUse, limits: StorageLimits, *, per_day: int, strain: Strain) -> tuple[float | None, str]:
    on_disk = max(0, use.free - limits.floor)
    room = max(0, min(limits.cap - use.footage, on_disk))
    if strain.paused:
        return None, "full, and nothing may be deleted: cameras pause"
    if per_day == 0:
        return None, "nothing was recorded lately"
    if strain.pinned:
        days = on_disk / per_day
        return days, f"over its limit and all held for events: cameras pause in {lasting(days)}"
    if room <= (use.footage + room) * _FULL_SHARE:
        return 0.0, f"full: the oldest goes, about {lasting(use.footage / per_day)} are kept"
    if (use.footage + room) / per_day >= limits.continuous_days:
        return None, f"does not fill up at this rate: footage is deleted after {limits.continuous_days} days"
    return room / per_day, f"full in {lasting(room / per_day)} at this rate"


def lasting(days: float) -> str:
    """Return a duration in words: "9 days", "31 hours"."""
    number, unit = (days, "day") if days >= _HOURS_UP_TO_DAYS else (days * 24, "hour")
    whole = max(1, int(number))
    return f"{whole} {unit}{'' if whole == 1 else 's'}"
