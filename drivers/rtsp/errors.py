"""Errors of cameras, one class per reaction. No text ever holds a URL or an account."""

from __future__ import annotations

from drivers.contract import DeviceFault, LinkError


class CameraUnreachable(LinkError):
    """No connection to the camera, or it broke."""


class CameraStalled(LinkError):
    """Connected, and no frame within the stall time."""


class CameraEnded(LinkError):
    """The camera ended the stream."""


class CameraRefused(DeviceFault):
    """The camera answered and refused: wrong account, no such stream, or a codec that is not recorded."""


class CodecNotSupported(CameraRefused):
    """The camera sends no codec that is recorded."""


class AccountRefused(CameraRefused):
    """The camera refused the user name or password. Many lock the account after a few tries: ask seldom."""
