"""The travel times of each gate, as the page gets them."""

from gateway.domain.events import EventKind
from gateway.domain.travels import TRAVEL_SECONDS


async def test_the_travels_of_a_gate_come_oldest_first_with_what_is_normal(gateway):
    for seconds in (*[3.0] * 39, *[4.8] * 5):
        await gateway.happened("the gate is open", kind=EventKind.GATE_OPENED, data={TRAVEL_SECONDS: seconds})
    await gateway.happened("the gate is closed", kind=EventKind.GATE_CLOSED, data={TRAVEL_SECONDS: 4.5})
    await gateway.happened("the gate is closed", kind=EventKind.GATE_CLOSED)
    status, answer = await gateway.call("/status/gate/travels", method="GET")
    assert status == 200
    opening, closing = answer["travels"]["entry"]["opening"], answer["travels"]["entry"]["closing"]
    assert [travel["seconds"] for travel in opening["travels"]] == [*[3.0] * 39, *[4.8] * 5]
    assert (opening["band"]["low"], opening["band"]["middle"]) == (3.0, 3.0)
    assert opening["slow"] == "its last 5 took 4.8 s; 3 s is normal, up to 3 s"
    assert [travel["seconds"] for travel in closing["travels"]] == [4.5]
    assert (closing["band"], closing["slow"]) == (None, "")
