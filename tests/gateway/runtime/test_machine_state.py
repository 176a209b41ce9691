"""The kernel's state of disks and memory, from files as it shows them."""

from __future__ import annotations

import os

import pytest

from gateway.runtime.machine_state import Memory, disk_facts, memory


def emmc(root, folder, *, life_time="0x02 0x01", pre_end="0x01", partition=True):
    """The kernel's folders of the disk that `folder` is on, as an eMMC with one partition."""
    device = folder.stat().st_dev
    disk = root / "sys/devices/mmc0/block/mmcblk0"
    (disk / "device").mkdir(parents=True)
    (disk / "device/life_time").write_text(life_time + "\n")
    (disk / "device/pre_eol_info").write_text(pre_end + "\n")
    own = disk / "mmcblk0p2" if partition else disk
    own.mkdir(exist_ok=True)
    link = root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(own)


@pytest.mark.parametrize("partition", [True, False], ids=["partition", "whole disk"])
@pytest.mark.parametrize(
    ("facts", "wear"),
    [
        ({}, None),
        ({"life_time": "0x08 0x08"}, None),
        ({"life_time": "0x01 0x09"}, "90 % of the life that its maker promises is used up"),
        ({"life_time": "0x0b 0x01"}, "it is used beyond the life that its maker promises"),
        ({"pre_end": "0x02"}, "80 % of its reserve is used up"),
        ({"pre_end": "0x03"}, "its reserve is used up"),
    ],
)
def test_an_emmc_tells_its_wear(tmp_path, facts, wear, partition):
    emmc(tmp_path, tmp_path, partition=partition, **facts)
    assert disk_facts({"data folder": tmp_path}, root=tmp_path).worn == ({} if wear is None else {"mmcblk0": wear})


def test_a_disk_that_tells_nothing_and_a_folder_that_is_not_there_are_no_facts(tmp_path):
    found = disk_facts({"data folder": tmp_path, "media folder": tmp_path / "away"}, root=tmp_path)
    assert (found.read_only, found.worn) == ((), {})


def test_the_room_of_a_disk_and_what_databases_take_of_it(tmp_path):
    (tmp_path / "site.db").write_bytes(b"x" * 3000)
    (tmp_path / "site.db-wal").write_bytes(b"x" * 500)
    (tmp_path / "lock").write_bytes(b"x" * 700)
    room = disk_facts({"data folder": tmp_path}, root=tmp_path).room["data folder"]
    assert room.databases == 3500
    assert 0 < room.free <= room.total
    assert room.device == tmp_path.stat().st_dev


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MACHINE = {"proc/meminfo": "MemTotal:       1000000 kB\nMemFree: 10 kB\nMemAvailable:    250000 kB\n"}
UNIT = "sys/fs/cgroup/system.slice/edge-gateway.service"


def test_memory_of_a_unit_with_a_limit_counts_without_what_the_kernel_gives_back(tmp_path):
    write(
        tmp_path,
        MACHINE
        | {
            "proc/self/cgroup": "0::/system.slice/edge-gateway.service\n",
            f"{UNIT}/memory.max": "max\n",
            f"{UNIT}/memory.high": "400000000\n",
            f"{UNIT}/memory.current": "390000000\n",
            f"{UNIT}/memory.stat": "anon 1\ninactive_file 190000000\n",
        },
    )
    found = memory(root=tmp_path)
    assert found == Memory(200_000_000, 400_000_000, of_unit=True)
    assert found.share == 0.5


@pytest.mark.parametrize("group", [{}, {"proc/self/cgroup": "0::/\n"}, {"sys/fs/cgroup/memory.max": "max\n"}])
def test_memory_of_the_machine_where_the_unit_has_no_limit(tmp_path, group):
    write(tmp_path, MACHINE | group)
    assert memory(root=tmp_path) == Memory(768_000_000, 1_024_000_000, of_unit=False)


def test_a_machine_that_does_not_tell(tmp_path):
    assert memory(root=tmp_path) is None
