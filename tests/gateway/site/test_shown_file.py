"""The site file as people are shown it."""

import pytest

from gateway.site import Secrets, SiteFaults, load
from gateway.site.shown_file import shown_file

FILE = """# my site
[site]
name = "North"
timezone = "Nowhere"
[api.tls]
certificate = "gate.pem"
key = "gate.key"
[rtsp]
username = "chief"
password = "hunter2"  # oh
[[devices]]
id = 1
name = "Gate"
driver = "modbus-gate"
link = "none"
profile = "relay-barrier"
[[cameras]]
id = 7
name = "Gate"
url = "rtsp://viewer:s3cret@10.0.0.7/main"
password = 's-e-c'
"""


def looked(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(SiteFaults) as caught:
        load(path, secrets=Secrets(folder=tmp_path / "secrets", environ={}))
    return shown_file(text.encode(), caught.value)


VALID = FILE.replace("Nowhere", "UTC").replace('"rtsp://viewer:s3cret@', '"rtsp://') + 'username = "viewer"\n'
"""The same file with faults between its parts alone."""


@pytest.mark.parametrize("text", [FILE, VALID])
def test_no_secret_is_shown(tmp_path, text):
    shown = looked(tmp_path, text)
    words = "\n".join((*shown.lines, *(f"{fault.place} {fault.text}" for fault in shown.faults)))
    for secret in ("hunter2", "HUNTER2", "s3cret", "s-e-c", "S_E_C"):
        assert secret not in words
    assert shown.lines[6] == 'key = "gate.key"'
    assert shown.lines[9] == 'password = "…"  # oh'


def test_faults_are_at_their_lines(tmp_path):
    by_line = {fault.line: (fault.place, fault.text) for fault in looked(tmp_path, FILE).faults}
    assert by_line[4] == ("site.timezone", "no time zone 'Nowhere'; write one like 'America/Toronto'")
    assert by_line[20][0] == "cameras[0].url (camera 7)"
    by_line = {fault.line: (fault.place, fault.text) for fault in looked(tmp_path, VALID).faults}
    assert by_line[10][0] == "rtsp.password"
    assert "secret" in by_line[10][1]
    assert by_line[15] == ("devices[0].link (device 1)", "no link 'none'")


def test_a_slip_of_the_pen_is_at_its_line(tmp_path):
    shown = looked(tmp_path, FILE.replace("id = 1\n", "id 1\n"))
    assert [fault.line for fault in shown.faults] == [12]


def test_a_sound_file_has_no_faults():
    shown = shown_file(b'[site]\nname = "North"\n', None)
    assert shown.lines == ("[site]", 'name = "North"')
    assert shown.faults == ()
