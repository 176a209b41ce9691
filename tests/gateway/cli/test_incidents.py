"""`edge-gateway replay` with files that are damaged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app
from gateway.domain.errors import ConfigError, GatewayError

SAVED = Path(__file__).parent.parent / "lanes" / "incidents" / "demo-plates.incident"


def replay(file, *options):
    done = CliRunner().invoke(app, ["replay", str(file), *options], obj=Invocation())
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code


def test_a_torn_file_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "torn.incident"
    whole = SAVED.read_bytes()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 9):
        file.write_bytes(whole[:length])
        with pytest.raises(ConfigError, match="no incident of a lane"):
            replay(file)


def test_replay_tells_programs_what_it_found():
    done = CliRunner().invoke(app, ["replay", str(SAVED), "--json"], obj=Invocation())
    told = json.loads(done.stdout)
    assert (done.exit_code, told["difference"]) == (0, None)
    assert told["events"] > 0


@pytest.mark.parametrize("options", [(), ("--verbose",)])
def test_a_value_that_no_lane_has_is_told_in_a_sentence(tmp_path, options):
    content = json.loads(gzip.decompress(SAVED.read_bytes()))
    content["state"][next(name for name, value in content["state"].items() if isinstance(value, dict))] = "noon"
    file = tmp_path / "damaged.incident"
    file.write_bytes(gzip.compress(json.dumps(content).encode()))
    with pytest.raises(GatewayError, match="the lane machine cannot answer the events of this file: fetch"):
        replay(file, *options)
