"""The probes, and the way from `/` to the page."""

from __future__ import annotations

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart

DEAF_GATE = Problem(
    kind=ProblemKind.GATE_OFFLINE,
    part=SitePart.DEVICE,
    id="101",
    name="Barrier",
    text="Barrier does not answer: unplugged",
    lanes=("Main entry",),
    since=1_772_323_200_000_000,
)


async def test_the_root_tells_programs_that_it_runs_and_sends_browsers_to_the_page(gateway):
    status, answer = await gateway.call("/", method="GET", user="")
    assert (status, answer) == (200, {"success": True, "name": "edge-gateway"})
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with gateway.client.get(gateway.url + "/", headers=browser, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/status/")
    async with gateway.client.get(gateway.url + "/status", headers=browser) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"


async def test_readiness_tells_why_only_to_those_who_signed_in(gateway):
    assert await gateway.call("/health/ready", method="GET", user="") == (200, {"success": True})
    gateway.problems.append(DEAF_GATE)
    assert await gateway.call("/health/ready", method="GET", user="") == (503, {"success": False, "error": "not ready"})
    status, answer = await gateway.call("/health/ready", method="GET")
    assert (status, answer["not_ready"]) == (503, ["Main entry cannot work: Barrier does not answer: unplugged"])
    assert answer["headline"] == "1 of 1 lanes cannot work, 1 problem"
    (problem,) = answer["problems"]
    assert (problem["kind"], problem["lanes"], problem["severity"]) == ("gate_offline", ["Main entry"], "alarm")
    assert problem["since"] == "2026-03-01T00:00:00.000Z"
    assert problem["steps"][0] == "Check the controller's supply and its fuse."
    gateway.problems.clear()
    assert await gateway.call("/health/ready", method="GET") == (
        200,
        {"success": True, "not_ready": [], "headline": "The lane works", "problems": []},
    )


async def test_liveness_is_a_bare_yes_without_a_session(gateway):
    assert await gateway.call("/health/live", method="GET", user="") == (200, {"success": True})
    status, answer = await gateway.call("/health/live", method="GET", user="nobody")
    assert (status, sorted(answer)) == (200, ["not_ready", "success", "version"])
    async with gateway.client.get(f"{gateway.url}/health/live", headers={"SessionID": "nonsense"}) as probed:
        assert await probed.json() == {"success": True}


async def test_a_gateway_that_is_not_ready_still_lives(gateway):
    gateway.problems.append(DEAF_GATE)
    assert await gateway.call("/health/live", method="GET", user="") == (200, {"success": True})
    status, answer = await gateway.call("/health/live", method="GET", user="nobody")
    assert (status, answer["not_ready"]) == (200, ["Main entry cannot work: Barrier does not answer: unplugged"])
    async with gateway.client.head(f"{gateway.url}/health/ready") as probed:
        assert probed.status == 503
