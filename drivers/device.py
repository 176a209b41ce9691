"""The section of a device in the site file: a driver's declarations, and the parts that it is built from.

A driver's package has a subclass of `GateDevice`, `ReaderDevice` or `Device`. `drivers.kinds` finds it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field

from drivers.contract import Driver, Gate, Reader
from drivers.settings import HOLD_SECONDS, HoldSeconds, Name, RecordId, Section, Slug

if TYPE_CHECKING:
    from drivers.bus.bus import Bus
    from drivers.bus.line_quality import LineQuality
    from drivers.link import LinkSpec

LineKind = Literal["serial", "tcp", "http", "http-listen"]
FindProfile = Callable[[str], Path | None]
"""Returns the file of the profile with this name, None when there is none."""

_Profile = TypeVar("_Profile")


class SharedLine(Protocol):
    """A line that several devices share: a `drivers.bus.bus.Bus`, or one of a family's own."""

    async def run(self) -> None:
        """Keep the line open until cancelled. Never returns otherwise."""
        ...

    def quality(self) -> LineQuality:
        """Return the line's state, and statistics of how its units answer."""
        ...


class NamedLine(NamedTuple):
    """The line of a device: the name of its link, its settings, and whether no other device is on it."""

    name: str
    spec: LinkSpec
    is_alone: bool


class LineNumber(NamedTuple):
    """The setting that tells a device from others on its line: its key, its value, and the value to compare."""

    key: str
    value: int
    compared: int


@dataclass(frozen=True, slots=True)
class Abilities:
    """A device's points and commands, as a lane may rely on them.

    Attributes:
        points: the named inputs; two names of one input have equal values.
        limits: the points that are limit switches, each with its role ("closed limit", "open limit").
        closes: whether the gate has a command to close; True if the device is no gate.
        has_position: whether the gate's position can be known; True if the device is no gate.
    """

    points: Mapping[str, Hashable] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    closes: bool = True
    has_position: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts that a driver is built from, besides its section.

    Attributes:
        spec: the device's line: its address and settings.
        line: the line that the devices of the link share, as `Device.new_line` has made it; None where a device opens
            its own.
        secret: returns the secret that a key of the section names. Raises ConfigError.
        find_profile: finds a profile's file.
        monotonic: the clock of deadlines and stamps.
    """

    spec: LinkSpec
    line: SharedLine | None
    secret: Callable[[str], str]
    find_profile: FindProfile
    monotonic: Callable[[], float]

    @property
    def bus(self) -> Bus:
        """The bus that the device shares with others of its line."""
        from drivers.bus.bus import Bus  # noqa: PLC0415  # only a site with such lines loads it

        if not isinstance(self.line, Bus):
            raise TypeError("the section's `new_line` makes no bus")
        return self.line


class Device(Section):
    """`[[devices]]`: one device. A subclass names its driver (`driver: Literal["…"]`), and adds its own keys.

    The first line of the subclass's docstring tells technicians what the driver is for. A key that names a secret has a
    type of `drivers.settings`, such as `SecretName`; the gateway looks it up, masks it in logs, and builds the driver
    anew when it changes.

    Attributes:
        has_points: whether the device has named inputs.
        shares_as: devices with the same word may share a line; "" for a device that shares with none.
        is_part_of_line: whether the line is made with its devices, and made anew when one of them changes.
        most_on_line: so many devices may share a line; None for no limit.
    """

    id: RecordId
    name: Name
    driver: str
    link: Slug

    has_points: ClassVar[bool] = False
    shares_as: ClassVar[str] = ""
    is_part_of_line: ClassVar[bool] = False
    most_on_line: ClassVar[int | None] = None

    @property
    def profile_name(self) -> str:
        """The name of the device's profile, "" for a device without one."""
        return ""

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("tcp", "serial")

    def number(self) -> LineNumber | None:
        """Return what tells the device from others on its line, None for a device that has nothing such."""
        return None

    def line_faults(self, line: NamedLine) -> Iterator[tuple[str, str]]:  # noqa: ARG002  # for subclasses
        """Yield what is wrong with the device on this line: a key of the section, and why."""
        yield from ()

    def faults_beside(self, first: Device, index: int) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield likewise why it cannot share the line with the first device there, which is `devices[index]`."""
        yield from ()

    def line_doubts(self, line: NamedLine, find_profile: FindProfile) -> Iterator[str]:  # noqa: ARG002
        """Yield what is suspicious in the line's settings, though valid: a sentence that follows the link's place."""
        yield from ()

    def doubts_beside(self, other: Device, index: int, find_profile: FindProfile) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield a key of the section, and what is suspicious beside an earlier device of the line, `devices[index]`."""
        yield from ()

    def profile_faults(self, line: NamedLine, find_profile: FindProfile) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        """Yield likewise what its profile makes wrong. It is called only where `abilities` raised nothing."""
        yield from ()

    def new_line(self, name: str, sharing: Sequence[Device], parts: Surroundings) -> SharedLine | None:  # noqa: ARG002
        """Return the line of the link for the devices that share it; None for a device that opens its own."""
        return None

    def abilities(self, find_profile: FindProfile) -> Abilities:  # noqa: ARG002  # for subclasses
        """Return the device's points and commands. Raises ProfileError for a profile's file with faults."""
        return Abilities()

    @abstractmethod
    def build(self, parts: Surroundings) -> Driver:
        """Build the driver. It opens nothing until it runs. Raises ConfigError or ValueError."""


class GateDevice(Device):
    """A barrier, door or turnstile."""

    @abstractmethod
    def build(self, parts: Surroundings) -> Gate:
        """Build the driver. It opens nothing until it runs. Raises ConfigError or ValueError."""


class ReaderDevice(Device):
    """A reader of cards, tags, codes or plates.

    Attributes:
        has_keys: whether it may have a keypad, so that a lane can ask for a PIN.
        reads_plates: whether it reads plates, not cards.
    """

    has_keys: ClassVar[bool] = False
    reads_plates: ClassVar[bool] = False

    @abstractmethod
    def build(self, parts: Surroundings) -> Reader:
        """Build the driver. It opens nothing until it runs. Raises ConfigError or ValueError."""


class BitsSection(Section):
    """Bit corrections of a reader; `edge-gateway cards explain` finds them."""

    skip_first: int = Field(default=0, ge=0, le=32, description="bits before the card's own")
    skip_last: int = Field(default=0, ge=0, le=32, description="bits behind the card's own")
    inverted: bool = False
    last_bit_first: bool = False
    last_byte_first: bool = False

    @property
    def added(self) -> int:
        """The number of bits that the reader adds to the card's own."""
        return self.skip_first + self.skip_last


class CardReaderDevice(ReaderDevice):
    """A reader that gives the bits or the text of cards."""

    hold_seconds: HoldSeconds = HOLD_SECONDS
    bits: BitsSection = BitsSection()


class ProfiledDevice(Device):
    """A device that a profile describes."""

    profile: Slug

    @property
    def profile_name(self) -> str:
        """The name of the device's profile."""
        return self.profile


def loaded(name: str, find: FindProfile, load: Callable[[Path], _Profile]) -> _Profile:
    """Return the profile of this name, read by `load`. Raises ValueError if there is none, and as `load` does."""
    path = find(name)
    if path is None:
        raise ValueError(f"no profile {name!r}")
    return load(path)
