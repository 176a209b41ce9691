from __future__ import annotations

import pytest
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app
from gateway.domain.errors import ConfigError
from gateway.domain.wiegand import H10301, H10302


def run(*words):
    return CliRunner().invoke(app, ["cards", "explain", *words], obj=Invocation())


def test_a_reading_is_explained():
    result = run("001,11572", "--read", "00000000100101101001101001")
    assert (result.exit_code, result.output) == (
        0,
        "facility 1, number 11572, 26 bits H10301: as the reader sends it\n",
    )


def test_the_setting_of_the_site_file_is_named():
    result = run("1EA68671", "--read", "0x7186A61E", "--length", "32")
    assert "with bits = { last_byte_first = true } at the reader" in result.output


def test_without_a_reading_its_meanings_are_listed():
    result = run("001,11572")
    assert "26 bits H10301: 00000000100101101001101001" in result.output
    assert "0x12D34" in result.output


@pytest.mark.parametrize(
    ("number", "bits", "entered"),
    [
        ("00199573", f"{H10301.build(3, 2965):026b}", "; the lane knows it as: cards add --number 003,02965"),
        ("00111572", f"{H10301.build(1, 11572):026b}", "; the lane knows it as: cards add --number 001,11572"),
        ("4711", f"{H10302.build(0, 4711):037b}", "; the lane knows it as: cards add --number 4711 --format h10302"),
        ("0005076483", f"{H10301.build(77, 30211):026b}", ""),
        ("003,02965", f"{H10301.build(3, 2965):026b}", ""),
    ],
)
def test_a_number_that_could_mean_another_card_is_told_with_the_one_that_cannot(number, bits, entered):
    told = run(number, "--read", bits).output.splitlines()
    assert any(line.endswith("as the reader sends it" + entered) for line in told)


def test_what_does_not_fit_is_said():
    result = run("002,11572", "--read", "00000000100101101001101001")
    assert result.exit_code == 1
    assert "no known format" in result.output


@pytest.mark.parametrize("read", ["0x25A69", "25A69"])
def test_hexadecimal_without_a_length_is_doubted_when_nothing_fits(read):
    result = run("12", "--read", read)
    assert f"{read} counts as 20 bits: if the reader sent more, give their number, such as --length 26" in result.output


@pytest.mark.parametrize("words", [("--read", "0x25A69", "--length", "26"), ("--read", "00100101101001101001")])
def test_a_known_length_is_not_doubted(words):
    assert "--length" not in run("12", *words).output


@pytest.mark.parametrize("words", [("1", "--read", "xyz"), ("1", "--read", "FF", "--length", "4"), ("1", "--read", "")])
def test_bits_that_are_none(words):
    assert isinstance(run(*words).exception, ConfigError)


def test_bits_after_0b_are_bits():
    read = "00000000100101101001101001"
    assert run("001,11572", "--read", f"0b{read}").output == run("001,11572", "--read", read).output
    assert run("5", "--read", "0b1010").output == run("5", "--read", "1010").output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--read", "0b1012"), "after 0b come zeros and ones"),
        (("--read", "0b"), "after 0b come zeros and ones"),
        (("--read", "0b1010", "--length", "5"), "after 0b come zeros and ones"),
        (("--read", "0x1F", "--length", "0"), "--length must be 1 to"),
        (("--read", "0x1F", "--length", "-3"), "--length must be 1 to"),
        (("--read", "1010", "--length", "0"), "--length must be 1 to"),
    ],
)
def test_what_is_no_length_and_no_bits_is_refused_in_one_sentence(words, told):
    result = run("5", *words)
    assert isinstance(result.exception, ConfigError)
    assert told in str(result.exception)
