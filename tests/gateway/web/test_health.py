"""The probes, and the way from `/` to the page."""


async def test_the_root_tells_programs_that_it_runs_and_sends_browsers_to_the_page(house):
    status, answer = await house.call("/", method="GET", user="")
    assert (status, answer) == (200, {"success": True, "name": "edge-gateway"})
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with house.client.get(house.url + "/", headers=browser, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/status/")
    async with house.client.get(house.url + "/status", headers=browser) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"


async def test_readiness_tells_why_only_to_those_who_signed_in(house):
    assert await house.call("/health/ready", method="GET", user="") == (200, {"success": True})
    house.not_ready.append("lane entry: its gate has not answered yet")
    assert await house.call("/health/ready", method="GET", user="") == (503, {"success": False, "error": "not ready"})
    status, answer = await house.call("/health/ready", method="GET")
    assert (status, answer["not_ready"]) == (503, house.not_ready)
    house.not_ready.clear()
    assert await house.call("/health/ready", method="GET") == (200, {"success": True, "not_ready": []})


async def test_liveness_is_a_bare_yes_without_a_session(house):
    assert await house.call("/health/live", method="GET", user="") == (200, {"success": True})
    status, answer = await house.call("/health/live", method="GET", user="nobody")
    assert (status, sorted(answer)) == (200, ["not_ready", "success", "version"])
    async with house.client.get(f"{house.url}/health/live", headers={"SessionID": "nonsense"}) as probed:
        assert await probed.json() == {"success": True}


async def test_a_gateway_that_is_not_ready_still_lives(house):
    house.not_ready.append("lane entry: its gate has not answered yet")
    assert await house.call("/health/live", method="GET", user="") == (200, {"success": True})
    status, answer = await house.call("/health/live", method="GET", user="nobody")
    assert (status, answer["not_ready"]) == (200, house.not_ready)
    async with house.client.head(f"{house.url}/health/ready") as probed:
        assert probed.status == 503
