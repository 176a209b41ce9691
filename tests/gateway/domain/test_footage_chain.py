import hashlib

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.footage import GENESIS, leaf_of, link_of, walked

hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)


def test_anybody_can_reckon_a_link_with_sha256_alone():
    leaf = leaf_of(path="7/2026010112/1_2.ts", sha256="ab" * 32)
    assert leaf == hashlib.sha256(b"edge-gateway segment\n7/2026010112/1_2.ts\n" + b"ab" * 32 + b"\n").hexdigest()
    assert link_of(GENESIS, leaf) == hashlib.sha256(bytes(32) + bytes.fromhex(leaf)).hexdigest()


@given(hashes, st.lists(hashes, min_size=1, max_size=8), st.data())
def test_whatever_is_changed_left_out_or_put_elsewhere_changes_the_link(start, leaves, data):
    end = walked(start, leaves)
    at = data.draw(st.integers(0, len(leaves) - 1))
    assert walked(start, leaves[:at] + leaves[at + 1 :]) != end
    changed = [*leaves]
    changed[at] = hashlib.sha256(bytes.fromhex(leaves[at])).hexdigest()
    assert walked(start, changed) != end
    assert walked(walked(start, leaves[:at]), leaves[at:]) == end
    if leaves[::-1] != leaves:
        assert walked(start, leaves[::-1]) != end
