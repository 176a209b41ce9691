"""Files of a change that nobody confirmed, as a restart finds them."""

import pytest

from gateway.site.trial_files import AtStart, TrialFiles

BEFORE, AFTER = b"before\n", b"after\n"


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "etc/site.toml"
    path.parent.mkdir()
    path.write_bytes(BEFORE)
    path.chmod(0o600)
    return TrialFiles(path=path, folder=tmp_path / "data/site-file")


def test_without_a_trial_the_file_counts(files):
    assert files.at_start() == AtStart()
    files.path.unlink()
    assert files.at_start() == AtStart()


def test_killed_before_the_file_was_written(files):
    files.begin(before=BEFORE, after=AFTER)
    assert files.at_start() == AtStart()
    assert not (files.folder / "trial").exists()


def test_killed_on_trial(files):
    files.begin(before=BEFORE, after=AFTER)
    files.put(AFTER)
    start = files.at_start()
    assert (start.text, start.put_back) == (BEFORE, True)
    assert files.path.read_bytes() == BEFORE
    assert files.path.stat().st_mode & 0o777 == 0o600
    assert files.path.with_name("site.toml.unconfirmed").read_bytes() == AFTER
    assert files.at_start() == AtStart()


def test_killed_after_it_was_confirmed(files):
    files.begin(before=BEFORE, after=AFTER)
    files.put(AFTER)
    files.end()
    assert files.at_start() == AtStart()
    assert files.path.read_bytes() == AFTER


def test_a_file_that_somebody_wrote_meanwhile_is_theirs(files):
    files.begin(before=BEFORE, after=AFTER)
    files.put(b"another\n")
    assert files.at_start() == AtStart()
    files.take_back(before=BEFORE)
    assert files.path.read_bytes() == b"another\n"


def test_a_file_that_cannot_be_written_is_passed_over_at_each_start(files):
    files.begin(before=BEFORE, after=AFTER)
    files.put(AFTER)
    draft = files.path.with_name(".site.toml.new")
    draft.mkdir()
    for _ in range(2):
        start = files.at_start()
        assert (start.text, start.put_back) == (BEFORE, False)
        assert "cannot be put back" in start.notice
    draft.rmdir()
    files.put(b"mended\n")
    assert files.at_start() == AtStart()


def test_a_link_to_the_file_stays_a_link(files, tmp_path):
    link = tmp_path / "site.toml"
    link.symlink_to(files.path)
    TrialFiles(path=link, folder=files.folder).put(AFTER)
    assert link.is_symlink()
    assert files.path.read_bytes() == AFTER
