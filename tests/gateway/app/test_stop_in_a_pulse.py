"""The whole house, told to stop by SIGTERM in the middle of a pulse that it has to end itself."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from waiting import until

from drivers.modbus.frames import Write
from drivers.modbus.profile import load_profile
from gateway.app.contexts import RunContext
from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load_whole
from gateway.site.trial_files import TrialFiles
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring

PROFILE = load_profile(Path(__file__).parents[3] / "drivers" / "profiles" / "relay-and-inputs.toml")
SITE = """
site = {{ name = "Small" }}
api = {{ port = 0 }}
storage = {{ media_gigabytes = 1, free_floor_gigabytes = 0.1 }}
links = [{{ id = "g", url = "tcp://127.0.0.1:{port}" }}]
devices = [{{ id = 101, name = "B", driver = "modbus-gate", link = "g", profile = "relay-and-inputs" }}]
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
arming = {{ device = 101, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
"""


async def test_the_output_is_off_when_the_house_has_ended(tmp_path):
    far_end = ModbusFarEnd(units={1: ProfileWiring(profile=PROFILE, barrier=Barrier())})

    def writes():
        return [(r.request.address, r.request.value) for r in far_end.received if isinstance(r.request, Write)]

    async with far_end.tcp() as port:
        path = tmp_path / "site.toml"
        path.write_text(SITE.format(port=port))
        with DataFolder.open(tmp_path / "data") as folder:
            secrets = Secrets(folder=tmp_path, environ={})
            run = RunContext(
                loaded=load_whole(path, secrets=secrets),
                files=TrialFiles(path=path, folder=tmp_path / "site-file"),
                folder=folder,
                secrets=secrets,
                notify=Notify(address=None),
            )
            house = Gateway(run)
            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                living = group.create_task(house.live())
                gate = house.field.field.gates[101]
                await until(lambda: house.lanes.devices()[0].online)
                await gate.open(deadline=time.monotonic() + 2)
                assert writes() == [(0, 0xFF00)]
                signal.raise_signal(signal.SIGTERM)
                await living
    assert writes() == [(0, 0xFF00), (0, 0)]
