"""The wiring of the mirror at an MQTT broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.app.contexts import ServicesContext

if TYPE_CHECKING:
    from gateway.mqtt.mirror import Mirror


def mirror_of(context: ServicesContext) -> Mirror | None:
    """Build the mirror for the site in force; None without `[mqtt]`. Raises ConfigError for a missing secret."""
    section, base = context.site().mqtt, context.base
    if section is None:
        return None
    from gateway.mqtt.line import Broker  # noqa: PLC0415  # most gateways start without it
    from gateway.mqtt.mirror import Mirror, Topics  # noqa: PLC0415  # likewise

    endpoint, topics = section.endpoint(), Topics(f"{section.topic}/{section.site}/{section.gateway}")
    return Mirror(
        broker=Broker(
            host=endpoint.host,
            port=endpoint.port,
            is_encrypted=section.is_encrypted,
            client_id=topics.root,
            username=section.username,
            password=base.run.secrets.get(section.password) if section.password else None,
            certificate=section.certificate,
            key=section.key,
            ca_file=section.ca_file,
        ),
        topics=topics,
        site_name=lambda: context.site().site.name,
        lanes=base.lanes.lanes,
        verdict=context.verdict,
        store=base.store,
        clock=base.clock,
    )
