"""The sections of devices in the site file that speak frames or lines of text on a serial line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from drivers.device import (
    Abilities,
    CardReaderDevice,
    Device,
    FindProfile,
    GateDevice,
    LineNumber,
    NamedLine,
    ProfiledDevice,
    ReaderDevice,
    Surroundings,
    loaded,
)
from drivers.gates.profile_parts import gate_abilities
from drivers.serial_line.card_lines import CheckDigits, Form
from drivers.settings import HOLD_SECONDS, HoldSeconds

if TYPE_CHECKING:
    from drivers.bus.bus import Bus
    from drivers.serial_line.gate import SerialGate
    from drivers.serial_line.profile import DeviceProfile, GateProfile, TagReaderProfile
    from drivers.serial_line.reader import SerialReader
    from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader


class SerialDevice(ProfiledDevice):
    """Fields of every device with frames of its own, driven by a profile."""

    unit: int = Field(default=1, ge=0, le=255, description="its address, for devices that have one")

    shares_as: ClassVar[str] = "frames"

    def number(self) -> LineNumber:
        """Return the device's address."""
        return LineNumber("unit", self.unit, self.unit)

    @abstractmethod
    def read_profile(self, find_profile: FindProfile) -> DeviceProfile:
        """Return the device's profile. Raises ProfileError."""

    def profile_faults(self, line: NamedLine, find_profile: FindProfile) -> Iterator[tuple[str, str]]:
        """Yield faults of a line that cannot send breaks, or that it cannot share: each needs a poll and an address."""
        profile = self.read_profile(find_profile)
        if profile.line.break_us and not line.spec.is_serial:
            message = (
                f"{profile.name} wants a break before each frame, which {line.name!r} cannot send; use a serial port"
            )
            yield "link", message
        if not line.is_alone and profile.sends_unasked:
            yield "link", f"{profile.name} sends unasked and cannot share {line.name!r}"
        elif not line.is_alone and not profile.names_unit:
            yield "link", f"{profile.name} has no address and cannot share {line.name!r}"


class SerialGateDevice(SerialDevice, GateDevice):
    """A gate controller with frames of its own on a serial line, driven by a profile."""

    driver: Literal["serial-gate"]

    has_points: ClassVar[bool] = True

    def new_line(self, name: str, sharing: Sequence[Device], parts: Surroundings) -> Bus:  # noqa: ARG002  # as its base
        """Return the bus of the line."""
        return _bus(name, parts)

    def abilities(self, find_profile: FindProfile) -> Abilities:
        """Return points and commands of the profile. Raises ProfileError."""
        profile = self.read_profile(find_profile)
        return gate_abilities(profile.points, profile.position, profile.commands)

    def build(self, parts: Surroundings) -> SerialGate:
        """Build the driver."""
        from drivers.serial_line.gate import SerialGate  # noqa: PLC0415  # only a site with one loads it

        return SerialGate(
            device_id=self.id,
            bus=parts.bus,
            profile=self.read_profile(parts.find_profile),
            unit=self.unit,
            monotonic=parts.monotonic,
        )

    def read_profile(self, find_profile: FindProfile) -> GateProfile:
        """Return the gate's profile. Raises ProfileError."""
        from drivers.serial_line.profile import load_gate_profile  # noqa: PLC0415  # only a site with one loads it

        return loaded(self.profile, find_profile, load_gate_profile)


class SerialTagReaderDevice(SerialDevice, ReaderDevice):
    """A reader of tags with frames of its own on a serial line, driven by a profile."""

    driver: Literal["serial-tag-reader"]
    unit: int = Field(default=0, ge=0, le=255, description="its address, for devices that have one")
    hold_seconds: HoldSeconds = HOLD_SECONDS

    def new_line(self, name: str, sharing: Sequence[Device], parts: Surroundings) -> Bus | None:  # noqa: ARG002
        """Return the bus of a reader that is polled; None for one that sends by itself."""
        return None if self.read_profile(parts.find_profile).poll is None else _bus(name, parts)

    def abilities(self, find_profile: FindProfile) -> Abilities:
        """Return the abilities of a device without points. Raises ProfileError."""
        self.read_profile(find_profile)
        return Abilities()

    def build(self, parts: Surroundings) -> SpeakingTagReader | PolledTagReader:
        """Build the driver."""
        from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader  # noqa: PLC0415

        profile = self.read_profile(parts.find_profile)
        if profile.poll is None:
            return SpeakingTagReader(
                device_id=self.id,
                spec=parts.spec,
                profile=profile,
                unit=self.unit,
                hold_seconds=self.hold_seconds,
                monotonic=parts.monotonic,
            )
        return PolledTagReader(
            device_id=self.id,
            bus=parts.bus,
            profile=profile,
            query=profile.poll,
            unit=self.unit,
            hold_seconds=self.hold_seconds,
            monotonic=parts.monotonic,
        )

    def read_profile(self, find_profile: FindProfile) -> TagReaderProfile:
        """Return the reader's profile. Raises ProfileError."""
        from drivers.serial_line.profile import load_tag_reader_profile  # noqa: PLC0415

        return loaded(self.profile, find_profile, load_tag_reader_profile)


class SerialReaderDevice(CardReaderDevice):
    """A card reader that sends one line of text per card.

    `form` says how the line is read. `text`: printable characters, kept as they are; such a card is found by its
    number as characters alone. `hex`: hexadecimal digits of the card's bits; colons, dashes, dots and blanks between
    them, `0x` before and `h` behind them do not count. `decimal`: a number, which gives 32 bits (64 for more than
    4294967295) and its digits as text. `wiegand26`: facility with 3 digits and card number with 5, together or with one
    of `,:;/-` or a blank between them, which give the 26 bits of H10301. Control characters and blanks around a line do
    not count.
    """

    driver: Literal["serial-reader"]
    terminator: str = Field(
        default="\r\n",
        min_length=1,
        max_length=2,
        description="the characters that end a line; where they are CR and LF, one of them alone will do",
    )
    prefix: str = Field(default="", description="characters before the card; a line without them is taken too")
    form: Form = Field(default="text", description="how a line is read, see above")
    check_digits: CheckDigits = Field(
        default="frame",
        description="for `hex`, what the last two digits are of those before: `xor`, `sum` or `none`; with `frame` "
        "lines of 12 digits, as of 125 kHz tags, end in their `xor`; behind such a frame with STX no other line counts",
    )
    heartbeat: str = Field(
        default="www.usr.cn",  # as serial servers of USR IOT are delivered
        max_length=64,
        description="a text that a serial server sends between the cards; the first card behind another "
        "text is lost, unless the form can have none of that text's characters",
    )

    @model_validator(mode="after")
    def _has_digits_to_check(self) -> Self:
        if self.check_digits in {"xor", "sum"} and self.form != "hex":
            raise ValueError(f"check_digits = {self.check_digits!r} needs form = 'hex'")
        return self

    def build(self, parts: Surroundings) -> SerialReader:
        """Build the driver."""
        from drivers.serial_line.reader import LineForm, SerialReader  # noqa: PLC0415  # only a site with one loads it

        return SerialReader(
            device_id=self.id,
            spec=parts.spec,
            lines=LineForm(
                terminator=self.terminator,
                prefix=self.prefix,
                form=self.form,
                check_digits=self.check_digits,
                heartbeat=self.heartbeat,
            ),
            hold_seconds=self.hold_seconds,
            monotonic=parts.monotonic,
        )


def _bus(name: str, parts: Surroundings) -> Bus:
    from drivers.bus.bus import Bus  # noqa: PLC0415  # only a site with such lines loads it

    return Bus(name=name, spec=parts.spec, monotonic=parts.monotonic)
