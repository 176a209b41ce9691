"""The data folder: one owner, writable or said why not, and the marker that knows the media disk."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from lacks import lacks

from gateway.domain.errors import ConfigError, StoreError
from gateway.runtime.data_folder import DataFolder, MediaCondition, adopt_media, media_condition

OPEN_IT = """
import sys
from pathlib import Path
from gateway.runtime.data_folder import DataFolder
from gateway.domain.errors import GatewayError
try:
    with DataFolder.open(Path(sys.argv[1])) as folder:
        print("open", folder.media_condition, flush=True)
        if sys.argv[2] == "hold":
            sys.stdin.read()
except GatewayError as error:
    print(type(error).__name__, error)
"""


def test_the_folder_is_made_with_its_parts(tmp_path):
    with DataFolder.open(tmp_path / "new" / "data") as folder:
        assert folder.media.is_dir()
        assert folder.run.is_dir()
        assert folder.path.stat().st_mode & 0o007 == 0
        assert folder.media_condition is MediaCondition.READY
        assert not (folder.path / ".probe").exists()


def test_a_second_instance_is_told_who_has_it(tmp_path):
    with DataFolder.open(tmp_path), pytest.raises(ConfigError, match=rf"in use by .* process {os.getpid()}$"):
        DataFolder.open(tmp_path)


def test_a_killed_owner_leaves_no_lock(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", OPEN_IT, tmp_path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "open ready\n"
        with pytest.raises(ConfigError, match=rf"process {holder.pid}$"):
            DataFolder.open(tmp_path)
        holder.kill()
        holder.wait(10)
        DataFolder.open(tmp_path).close()


def test_a_failed_open_gives_the_lock_back(tmp_path):
    (tmp_path / "run").write_text("not a folder")
    with pytest.raises(ConfigError):
        DataFolder.open(tmp_path)
    (tmp_path / "run").unlink()
    folder = DataFolder.open(tmp_path)
    folder.close()
    folder.close()


def test_a_file_in_its_place_is_named(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(ConfigError, match=r"^data folder \S*/data is not a folder$"):
        DataFolder.open(tmp_path / "data")


NEW = "it is new, so no gate is driven until it takes data"


def no_own_disk(why):
    lacks(f"no disk of its own can be mounted here (Debian: util-linux): {why}")


def on_own_disk(folder, options, then):
    """Open the folder in a process that sees a small disk of its own there. Its answer, a line."""
    if shutil.which("unshare") is None:
        no_own_disk("no unshare")
    folder.mkdir()
    script = f'mount -t tmpfs -o {options} tmpfs "$1" && {then} && exec "$2" -c "$3" "$1" -'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", folder, sys.executable, OPEN_IT]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if not result.stdout:
        no_own_disk(result.stderr)
    return result.stdout.strip()


def test_a_full_disk_is_named(tmp_path):
    answer = on_own_disk(tmp_path / "data", "size=16k", "true")
    assert re.fullmatch(rf"StoreError data folder \S*/data is full; free some space on its disk; {NEW}", answer)


def test_a_read_only_disk_is_named(tmp_path):
    answer = on_own_disk(tmp_path / "data", "size=1m", 'mount -o remount,ro "$1"')
    assert re.fullmatch(rf"StoreError data folder \S*/data is on a read-only disk; {NEW}", answer)


def test_missing_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(ConfigError, match="may not be written by user"):
            DataFolder.open(tmp_path / "data")
    finally:
        tmp_path.chmod(0o700)


def condition(path):
    with DataFolder.open(path) as folder:
        return folder.media_condition


def test_the_marker_tells_an_unmounted_disk_from_ours(tmp_path):
    assert condition(tmp_path) is MediaCondition.READY
    assert condition(tmp_path) is MediaCondition.READY
    (tmp_path / "media").rename(tmp_path / "disk")
    assert condition(tmp_path) is MediaCondition.MARKER_MISSING
    shutil.rmtree(tmp_path / "media")
    (tmp_path / "disk").rename(tmp_path / "media")
    assert condition(tmp_path) is MediaCondition.READY


def test_another_gateways_disk_is_not_written_until_adopted(tmp_path):
    condition(tmp_path / "one")
    condition(tmp_path / "other")
    shutil.rmtree(tmp_path / "one/media")
    shutil.copytree(tmp_path / "other/media", tmp_path / "one/media")
    made = tmp_path / "one/media/clips/2000000000.mp4"
    footage = tmp_path / "one/media/7/2026010112/1_2000000.ts"
    for file in (made, footage):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"of the other gateway")
    with DataFolder.open(tmp_path / "one") as folder:
        assert folder.media_condition is MediaCondition.OTHER_DISK
        assert adopt_media(tmp_path / "one", same_disk=True), "beside a gateway that runs"
        assert media_condition(tmp_path / "one") is MediaCondition.READY
        assert not made.exists(), "the other gateway's event of that number is another event"
        assert footage.exists()
        made.touch()
        assert not adopt_media(tmp_path / "one"), "there is nothing to do any more"
        assert made.exists()
    assert condition(tmp_path / "one") is MediaCondition.READY


def test_footage_outlives_a_lost_data_folder(tmp_path):
    condition(tmp_path)
    marker = (tmp_path / "media/.edge-gateway-media").read_text()
    (tmp_path / "media.uuid").unlink()
    assert condition(tmp_path) is MediaCondition.READY
    assert (tmp_path / "media.uuid").read_text() == marker


def test_a_new_disk_is_adopted_with_a_new_marker(tmp_path):
    condition(tmp_path)
    (tmp_path / "media/.edge-gateway-media").unlink()
    with pytest.raises(ConfigError, match="mount the new disk there first"):
        adopt_media(tmp_path)
    assert condition(tmp_path) is MediaCondition.MARKER_MISSING, "an empty mount point is not taken for a disk"
    assert adopt_media(tmp_path, same_disk=True)
    assert condition(tmp_path) is MediaCondition.READY


def test_a_broken_media_folder_does_not_stop_the_lanes(tmp_path):
    (tmp_path / "media").symlink_to(tmp_path / "nowhere")
    assert condition(tmp_path) is MediaCondition.NOT_WRITABLE


def test_adopting_what_cannot_be_written_is_refused(tmp_path):
    condition(tmp_path)
    shutil.rmtree(tmp_path / "media")
    (tmp_path / "media").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="media cannot be used"):
        adopt_media(tmp_path, same_disk=True)


def test_only_a_gateways_own_data_folder_adopts(tmp_path):
    with pytest.raises(ConfigError, match="is not the data folder of a gateway"):
        adopt_media(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_root_adopts_is_the_gateways_to_write(reachable_path):
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    condition(reachable_path)
    shutil.rmtree(reachable_path / "media")
    os.chown(reachable_path, 12345, 12345)
    adopt_media(reachable_path, same_disk=True)
    made = [reachable_path / name for name in ("media", "media/.edge-gateway-media", "media.uuid")]
    assert {path.stat().st_uid for path in made} == {12345}
