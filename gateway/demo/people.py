"""The people whom the simulated central knows: try them at the site's page, and again while central is away."""

from __future__ import annotations

from gateway.demo.central.accounts import CentralAccount, RoleForm

MANAGER_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"  # noqa: S105 (of the demo)
PEOPLE = (
    CentralAccount(
        "guard",
        "demo",
        permissions=frozenset(
            {"can_view_devices", "can_control_devices", "can_view_events", "can_view_cameras", "can_view_camera_events"}
        ),
        role_name="Guard",
        role_form=RoleForm.FLAGS,
    ),
    CentralAccount("manager", "demo", role_name="Manager", mfa_secret=MANAGER_SECRET),
)
"""A guard, who may do some things, and a manager, who may do everything with a second factor."""
