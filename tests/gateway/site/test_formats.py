"""Site files of older formats are understood and can be rewritten; newer ones are refused."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app
from gateway.domain.errors import ConfigError
from gateway.site import SiteFaults, doubtful, load, load_whole, secrets_beside
from gateway.site.formats import FORMAT, STEPS, former_places, rewritten, understood

OLD = """\
# My site.
[site]
name = "North"

[keep]                              # so long
days = 30
reader_days = 14                    # a till on holiday
most_days = 60
"""


def old_keys(path) -> list[str]:
    """Return the warnings about the file's keys."""
    return [doubt for doubt in doubtful(load(path), path) if "--rewrite" in doubt]


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(OLD)
    return path


def test_a_file_of_the_first_format_means_what_it_meant(old):
    assert load(old).keep.consumer_days == 14
    (doubt,) = old_keys(old)
    assert doubt.startswith(
        "[keep] reader_days: this setting is called consumer_days since format 2; `edge-gateway check"
    )


def test_it_is_rewritten_with_its_comments_and_the_old_one_is_kept(old):
    ran = CliRunner().invoke(app, ["check", "--rewrite", str(old)], obj=Invocation())
    assert ran.exit_code == 0, ran.output
    text = old.read_text()
    assert text == OLD.replace("# My site.\n", f"format = {FORMAT}\n\n# My site.\n").replace(
        "reader_days", "consumer_days"
    )
    assert old.with_name(f"site.toml.before-format-{FORMAT}").read_text() == OLD
    assert not old_keys(old)
    ran = CliRunner().invoke(app, ["check", "--rewrite", str(old)], obj=Invocation())
    assert f"has format {FORMAT} already" in ran.output
    assert old.read_text() == text


WIRED = """\
[[lanes]]
id = "entry"
local = { device = 1, point = "key" } # locked
# The loops.
arming = { device = 1, point = "a" }
gate = 1
  # under the gate
  closing = { device = 1, point = "c" }   # 2 m
safety = [
  { device = 1, point = "high" }, # for lorries
  { device = 2, point = "low" },
]
closes = "device"

[lanes.doubt]
no_cards = "open"

[[lanes]]
id = "exit"
inputs = [{ role = "arming", device = 3, point = "a" }]

[[lanes]]
id = "yard"
arming = { device = 2, point = "a" }
"""


def test_inputs_of_a_lane_become_rows_with_their_comments():
    assert (
        rewritten(WIRED)
        == f"""\
format = {FORMAT}

[[lanes]]
id = "entry"
inputs = [
    {{ role = "key_switch", device = 1, point = "key" }}, # locked
    # The loops.
    {{ role = "arming", device = 1, point = "a" }},
    # under the gate
    {{ role = "closing", device = 1, point = "c" }}, # 2 m
    # for lorries
    {{ role = "safety", device = 1, point = "high" }},
    {{ role = "safety", device = 2, point = "low" }},
]
gate = 1
closes = "device"

[lanes.doubt]
no_cards = "open"

[[lanes]]
id = "exit"
inputs = [{{ role = "arming", device = 3, point = "a" }}]

[[lanes]]
id = "yard"
inputs = [
    {{ role = "arming", device = 2, point = "a" }},
]
"""
    )


def test_places_of_inputs_in_an_older_file_are_those_of_its_keys():
    places = former_places(tomllib.loads(WIRED))
    assert [places[f"lanes[0].inputs[{row}]"] for row in range(5)] == [
        f"lanes[0].{key}" for key in ("key_switch", "arming", "closing", "safety[0]", "safety[1]")
    ]
    assert places["lanes[2].inputs[0]"] == "lanes[2].arming"
    assert len(places) == 6


@pytest.mark.parametrize(
    "lane",
    ['arming = { device = 1, point = "a" }\ninputs = []', 'arming.device = 1\narming.point = "a"', "[lanes.arming]"],
)
def test_inputs_in_other_forms_are_left_to_a_person(lane):
    with pytest.raises(ConfigError, match=r"make one list of them|edit it by hand"):
        rewritten(f"[[lanes]]\n{lane}\n")


TRACED = """\
[site]
name = "North"

# Where the time goes.
[tracing]
endpoint = "http://192.168.1.30:4318"   # Tempo
# ca_file = "none"
ca_file = "/nowhere/ca.pem"

# The rest.
[keep]
days = 30
"""


def test_a_section_that_is_gone_has_no_effect_and_is_told(old):
    old.write_text(TRACED)
    assert load(old).keep.days == 30
    (doubt,) = old_keys(old)
    assert doubt.startswith("[tracing]: this section is gone since format 4: traces of cards are no longer sent;")


def test_a_section_that_is_gone_is_taken_out_with_its_comments(old):
    old.write_text(TRACED)
    assert CliRunner().invoke(app, ["check", "--rewrite", str(old)], obj=Invocation()).exit_code == 0
    assert (
        old.read_text()
        == f"""\
format = {FORMAT}

[site]
name = "North"

# The rest.
[keep]
days = 30
"""
    )


@pytest.mark.parametrize("line", ['tracing.endpoint = "http://a:1"', 'tracing = { endpoint = "http://a:1" }'])
def test_a_section_in_one_line_is_taken_out(line):
    assert rewritten(f'{line}\n[site]\nname = "North"\n') == f'format = {FORMAT}\n\n[site]\nname = "North"\n'


def test_a_section_that_is_gone_is_unknown_in_a_file_of_today(old):
    old.write_text(f"format = {FORMAT}\n{TRACED}")
    with pytest.raises(SiteFaults) as refused:
        load(old)
    assert [fault.place for fault in refused.value.faults] == ["tracing"]


ACCOUNTS = """\
[[api.accounts]]
username = "ada"
password = "ada-password"

[[api.accounts]]
username = "{name}"
password = "{password}"
permissions = ["{permission}"]
"""


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({}, []),
        ({"name": "ada"}, ["api.accounts[1].username: 'ada' is already used by api.accounts[0]"]),
        ({"permission": "view"}, ["api.accounts[1].permissions[0]: must be '*' or the name of a permission, as"]),
        ({"password": "of it"}, ["api.accounts[1].password: must be the name of a secret: 1 to 64 letters, digits,"]),
    ],
)
def test_accounts_of_an_older_file_are_still_checked(old, given, faults):
    text = ACCOUNTS.format(**{"name": "tech", "password": "tech", "permission": "can_view_devices", **given})
    old.write_text(f"{OLD}\n{text}")
    assert [str(fault)[: len(told)] for fault, told in zip(faults_in(old), faults, strict=True)] == faults


def faults_in(path):
    try:
        load(path)
    except SiteFaults as error:
        return error.faults
    return ()


def test_accounts_of_an_older_file_need_no_secret_and_are_told(old):
    old.write_text(OLD + ACCOUNTS.format(name="tech", password="tech", permission="can_view_devices"))
    found = load_whole(old, secrets=secrets_beside(old)).accounts
    assert [(one.username, one.permissions) for one in found] == [("ada", ("*",)), ("tech", ("can_view_devices",))]
    assert any(doubt.startswith("[api.accounts]: this section is gone since format 5") for doubt in old_keys(old))


def test_accounts_in_a_file_of_today_are_refused(old):
    old.write_text(f"format = {FORMAT}\n" + ACCOUNTS)
    with pytest.raises(SiteFaults) as refused:
        load(old)
    faults = [str(fault) for fault in refused.value.faults]
    assert "api: accounts are kept in the register, not in the site file: see edge-gateway users" in faults


def test_a_file_with_faults_is_not_rewritten(old):
    old.write_text(OLD + "typo = 1\n")
    before = old.read_text()
    assert CliRunner().invoke(app, ["check", "--rewrite", str(old)], obj=Invocation()).exit_code != 0
    assert old.read_text() == before


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (str(FORMAT + 1), f"is {FORMAT + 1}, and this program knows formats up to {FORMAT}: install the newer program"),
        ("0", "must be a whole number"),
        ("true", "must be a whole number"),
        ('"2"', "must be a whole number"),
    ],
)
def test_an_unknown_format_is_refused_with_one_sentence(old, value, told):
    old.write_text(f"format = {value}\nnew_section = 1\n{OLD}")
    with pytest.raises(SiteFaults) as refused:
        load(old)
    (fault,) = refused.value.faults
    assert str(fault).startswith(f"format: {told}")


def test_a_key_of_today_in_a_file_without_a_number_is_taken_as_it_is(old):
    old.write_text(OLD.replace("reader_days", "consumer_days"))
    assert load(old).keep.consumer_days == 14
    assert not old_keys(old)


def test_an_old_key_in_a_file_of_today_is_unknown(old):
    old.write_text(f"format = {FORMAT}\n{OLD}")
    with pytest.raises(SiteFaults) as refused:
        load(old)
    assert [fault.place for fault in refused.value.faults] == ["keep.reader_days"]


def test_both_names_at_once_are_left_to_a_person(old):
    with pytest.raises(ConfigError, match="has both reader_days and consumer_days"):
        rewritten(OLD + "consumer_days = 3\n")


def test_formats_follow_each_other():
    numbers = [step.since for step in STEPS]
    assert numbers == sorted(numbers)
    assert numbers[0] == 2


@given(
    st.lists(
        st.sampled_from(
            [
                "# a comment",
                "",
                "days = 40",
                "reader_days = 3",
                "'most_days' = 900",
                "[site]",
                "x = [\n1,\n]",
                "[tracing]",
                "[[api.accounts]]",
                "[api]",
                "accounts = [{ x = 1 }]",
                "accounts.x = 1",
            ]
        )
    )
)
def test_what_is_rewritten_means_the_same(lines):
    text = "\n".join(["[keep]", *lines, ""])
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    filled = {key: value for key, value in understood(raw).items() if value != {}}
    new = tomllib.loads(rewritten(text))
    assert {key: value for key, value in new.items() if value != {}} == {**filled, "format": FORMAT}
    assert rewritten(rewritten(text)) == rewritten(text)
