"""A key is set once, in a reader that is in its install mode, and the channel is secure from then on."""

import secrets

import pytest
from osdp import Command

from drivers.contract import DeviceConnected, LinkError
from drivers.osdp.line import set_key

KEY = secrets.token_bytes(16)


def keys_set(peripherals):
    return [said["data"] for said in peripherals.shown if said["command"] == Command.Keyset]


async def test_a_new_reader_takes_the_key(peripherals):
    await peripherals.plug_in({"address": 5, "key": None})
    await set_key(spec=peripherals.spec, address=5, key=KEY)
    assert keys_set(peripherals) == [KEY.hex()]


@pytest.mark.long("three processes of libosdp, one after the other")
async def test_a_new_reader_takes_the_key_once_and_is_reached_with_it(peripherals, connected_reader, listener):
    await peripherals.plug_in({"address": 5, "key": None})
    await set_key(spec=peripherals.spec, address=5, key=KEY)
    await set_key(spec=peripherals.spec, address=5, key=KEY)  # as after an interruption
    assert keys_set(peripherals) == [KEY.hex()]
    async with connected_reader(peripherals.spec, {5: KEY}):
        await listener.until(lambda: listener.of(DeviceConnected))


@pytest.mark.long("two processes, and the seconds in which libosdp gives up")
async def test_a_reader_with_another_key_is_left_as_it_is(peripherals):
    await peripherals.plug_in({"address": 5, "key": secrets.token_bytes(16).hex()})
    with pytest.raises(LinkError, match="answers, but"):
        await set_key(spec=peripherals.spec, address=5, key=KEY)
    assert not keys_set(peripherals)
