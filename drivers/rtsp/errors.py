"""Errors of cameras, one class for each reaction. Their texts never contain a URL, user name or password."""

from __future__ import annotations

from drivers.contract import DeviceFault, LinkError


class CameraUnreachable(LinkError):
    """There is no connection to the camera, or it broke."""


class CameraSilent(CameraUnreachable):
    """The camera is connected, and did not answer a request in time."""


class CameraStalled(LinkError):
    """The camera is connected but sent no usable frame for too long."""


class CameraEnded(LinkError):
    """The camera ended the stream."""


class CameraMoved(LinkError):
    """The camera sends us to another address, after it was asked for its stream."""


class CameraRefused(DeviceFault):
    """The camera answered and refused: a wrong account, no such stream, or a codec that is not recorded."""


class CodecNotSupported(CameraRefused):
    """The camera offers only codecs that are not recorded."""


class AccountRefused(CameraRefused):
    """The camera refused the user name or password. Many lock the account after a few attempts, so retry rarely."""
