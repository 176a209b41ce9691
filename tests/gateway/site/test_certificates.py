"""The end of the certificate of `[api.tls]`."""

from __future__ import annotations

import pytest
from certificates import write_pair

from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.site.api_section import TlsSection
from gateway.site.certificates import ends_at

DAY = 86_400_000_000


@pytest.mark.parametrize("days", [2, 30, -3])
def test_end_of_a_certificate(tmp_path, days):
    tls = TlsSection(**write_pair(tmp_path, days=days).tls)
    assert abs(ends_at(tls) - SystemClock().wall().micros - days * DAY) < DAY


def test_file_that_holds_no_certificate(tmp_path):
    (tmp_path / "none.pem").write_text("-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigError, match="is not a certificate in PEM form"):
        ends_at(TlsSection(certificate=str(tmp_path / "none.pem"), key=str(tmp_path / "none.pem")))
