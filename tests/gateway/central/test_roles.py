"""The rights that a role of central gives here, in the forms that installations may show it in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.central.client.accounts import RoleMap, name_of, permissions_of
from gateway.domain.accounts import is_permission

PLAIN = RoleMap()
LOOK, OPEN = "can_view_devices", "can_control_devices"


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ([LOOK, OPEN, "view_all"], {LOOK, OPEN}),
        ({"permissions": [LOOK, 7, None]}, {LOOK}),
        ({"name": "Guard", LOOK: True, OPEN: False}, {LOOK}),
        ({LOOK: 1, OPEN: 0, "can_view_events": "yes"}, {LOOK}),
        ({"permissions": {LOOK: True, OPEN: None}}, {LOOK}),
        ({"permissions": [{"name": LOOK}, {"name": OPEN, "enabled": False}]}, {LOOK}),
        ({"permissions": [{"key": LOOK, "value": 1}, {"key": OPEN, "value": "no"}]}, {LOOK}),
        ({"permissions": ["*"]}, {"*"}),
        ({"permissions": {"items": [LOOK]}}, set()),
        ({"is_admin": True}, set()),
        (None, set()),
        ("Guard", set()),
        ({"permissions": LOOK}, set()),
    ],
)
def test_forms(role, allowed):
    assert permissions_of(role, PLAIN) == allowed


def test_the_site_file_says_how_to_read_it():
    how = RoleMap(
        paths=("rights.items", ""),
        names={"gates": (OPEN, LOOK), "is_admin": ("*",), LOOK: ()},
        roles={"Guard": ("can_view_events",)},
    )
    assert permissions_of({"title": "Guard", "rights": {"items": ["gates"]}}, how) == {OPEN, LOOK, "can_view_events"}
    assert permissions_of({"is_admin": True}, how) == {"*"}
    assert permissions_of({LOOK: True}, how) == set()


def test_names():
    assert name_of({"name": "  Night\n guard "}) == "Night guard"
    assert name_of({"title": "Guard"}) == "Guard"
    assert name_of("Guard") == "Guard"
    assert name_of({"name": 7}) == ""
    assert name_of(None) == ""


_FIELDS = st.sampled_from([LOOK, "*", "permissions", "name", "enabled"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([LOOK, "*", "name", "permissions", "x"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([LOOK, "*", "permissions", "name"]), inner)
    ),
    max_leaves=12,
)


@given(role=_JSON)
def test_whatever_a_role_is_only_permissions_come_of_it(role):
    assert all(is_permission(name) for name in permissions_of(role, PLAIN))
    assert len(name_of(role)) <= 120
