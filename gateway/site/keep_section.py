"""What a site file says of how long events are kept."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from gateway.site.fields import Section


class KeepSection(Section):
    """`[keep]`: how long events, camera events and parking entries are kept in the store; footage is `[storage]`'s."""

    days: int = Field(
        default=400, ge=1, le=3650, description="so long everything, and what a program has not read longer"
    )
    most_days: int = Field(default=800, ge=1, le=3650, description="nothing for longer, whoever has not read it")
    most_events: int = Field(
        default=5_000_000, ge=10_000, le=100_000_000, description="the oldest go before there are more"
    )
    reader_days: int = Field(
        default=30, ge=1, le=3650, description="a program that has not read for so long holds nothing"
    )

    @model_validator(mode="after")
    def _at_most_beyond(self) -> Self:
        if self.most_days < self.days:
            raise ValueError(
                f"'most_days' is {self.most_days}, less than the {self.days} of 'days': what programs have not read is "
                "kept for longer than the rest, not for less"
            )
        return self
