"""Errors of the gateway, one class per reaction. Device errors are in `drivers.contract`."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.texts import Text, Words


class GatewayError(Exception):
    """Base of the gateway's own errors. Its text is one clear sentence for the person who can correct the cause.

    It is made with a `Text`, or with a sentence in the words of others.
    """

    @property
    def words(self) -> Words:
        """The sentence as a text with its key, if it has one."""
        (words,) = self.args or ("",)
        return words if isinstance(words, Text) else str(self)


class ConfigError(GatewayError):
    """The site file, a profile or a secret is wrong. The installer must correct it; the gateway does not start."""

    def lines(self) -> Iterable[str]:
        """Return each fault by itself, for people; empty when the text says everything."""
        return ()


class StoreError(GatewayError):
    """The store cannot write or read data (full, read-only, newer schema). Lanes continue, and technicians see it."""


class QuotaExceeded(GatewayError):
    """A quota is used up, so nothing was changed. A retry succeeds once there is space again."""


class NotFoundError(GatewayError):
    """A record with that id does not exist."""


class CommandRefused(GatewayError):
    """A command was refused before it reached the device, for example by an interlock or after its deadline."""


class GatewayUnreachable(GatewayError):
    """No gateway answers a command of the command line. The user must start the gateway, or name another address."""


class CentralUnavailable(GatewayError):
    """Central cannot be reached, or answers with a failure of its own. The request is retried later.

    Attributes:
        why: the cause in words, the same for each request.
        operation: the request, "" where it is not told.
        sent: whether the request may have reached central, so that it may have been carried out.
    """

    def __init__(self, why: str, *, operation: str = "", sent: bool = True) -> None:
        super().__init__(f"{operation}: {why}" if operation else why)
        self.why = why
        self.operation = operation
        self.sent = sent


class CentralRefused(GatewayError):
    """Central refused the request. A retry will not help.

    Attributes:
        status: the HTTP status of its answer; 0 when the refusal is no answer to this request.
        said: central's own words, "" for none.
        operation: what was refused, such as "POST /v1/device/list"; "" if it is no single operation.
    """

    def __init__(self, text: str, *, status: int = 0, said: str = "", operation: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.said = said
        self.operation = operation


class ReceiverRefused(GatewayError):
    """A webhook's address is not allowed. The text leaves out the URL, which may contain a secret."""


class SecretRefused(GatewayError):
    """A webhook's secret has a wrong form. The text leaves out the secret."""


class CameraUnavailable(GatewayError):
    """The camera worker or the camera cannot serve a request now.

    Attributes:
        retry_after: whole seconds after which a retry may succeed.
    """

    def __init__(self, text: Words, *, retry_after: int = 5) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class OfferUnanswered(CameraUnavailable):
    """The camera worker ended, or fell silent, while it had a viewer's offer."""
