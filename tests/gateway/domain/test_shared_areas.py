"""Records that gateways share: merged in the order of clocks, contradictions told, and places counted."""

from __future__ import annotations

from gateway.domain.presence import Presence, Way, Whereabouts
from gateway.domain.shared_areas import (
    CLOCKS_AGREE_MICROS,
    STEPS_KEPT,
    AreaStep,
    Claim,
    GatewayCounts,
    HolderEntry,
    SharedRecords,
    contradictions,
    local_name,
    shared_name,
    shared_parts,
    unknown_steps,
)


def came_in(at: int, by: str = "gate-1", **more) -> AreaStep:
    return AreaStep(at, by, enters="garage", **more)


def went_out(at: int, by: str = "gate-1", **more) -> AreaStep:
    return AreaStep(at, by, leaves="garage", **more)


def test_passages_are_merged_in_the_order_of_their_clocks():
    entry = HolderEntry((came_in(1), came_in(9, "gate-2")))
    merged = entry.with_steps([went_out(5, "gate-3")])
    assert [step.at for step in merged.steps] == [1, 5, 9]
    assert merged.place == Whereabouts("garage", 9)
    assert merged.with_steps([went_out(5, "gate-3")]) == merged, "told twice is told once"


def test_the_order_in_which_sides_are_merged_does_not_matter():
    here, there = [came_in(1), went_out(7)], [came_in(3, "gate-2"), went_out(4, "gate-2")]
    assert HolderEntry().with_steps(here).with_steps(there) == HolderEntry().with_steps(there).with_steps(here)


def test_after_a_forgiveness_the_place_is_unknown():
    assert HolderEntry((came_in(1), AreaStep(2, "gate-2", forgiven=True))).place is None
    assert HolderEntry().place is None


def test_an_entry_keeps_the_last_passages():
    entry = HolderEntry().with_steps(came_in(at) for at in range(20))
    assert [step.at for step in entry.steps] == list(range(20 - STEPS_KEPT, 20))


def test_entered_twice_and_left_twice_are_contradictions():
    assert [(one.before.at, one.after.at) for one in contradictions(HolderEntry((came_in(1),)), [came_in(5)])] == [
        (1, 5)
    ]
    left = [went_out(5), went_out(9, "gate-2")]
    assert [(one.before.at, one.after.at) for one in contradictions(HolderEntry((came_in(1),)), left)] == [(5, 9)]
    assert not list(contradictions(HolderEntry((came_in(1),)), [went_out(5), came_in(9)]))
    assert not list(contradictions(HolderEntry((came_in(1), came_in(2))), [])), "each is told once, by who adds it"
    forgiven = AreaStep(3, "gate-2", forgiven=True)
    assert not list(contradictions(HolderEntry((came_in(1), forgiven)), [came_in(5)]))


def test_a_passage_between_two_others_is_compared_with_both():
    entry = HolderEntry((came_in(1), went_out(9)))
    found = list(contradictions(entry, [came_in(5, "gate-2")]))
    assert [(one.before.at, one.after.at) for one in found] == [(1, 5)]


def test_the_order_is_certain_only_if_trusted_clocks_are_far_enough_apart():
    far = CLOCKS_AGREE_MICROS + 1

    def is_certain(after: AreaStep) -> bool:
        (found,) = contradictions(HolderEntry((came_in(1),)), [after])
        return found.is_certain

    assert is_certain(came_in(1 + far, "gate-2"))
    assert not is_certain(came_in(far, "gate-2"))
    assert not is_certain(came_in(1 + far, "gate-2", trusted=False))
    assert is_certain(came_in(2)), "one clock orders its own passages"


def test_places_are_counted_over_gateways_and_claims():
    records = SharedRecords()
    records.put_counts("gate-1", GatewayCounts({"garage": 5}), 1)
    records.put_counts("gate-2", GatewayCounts({"garage": -2}, {"garage": 7}), 2)
    claim = Claim("a", "gate-1", 1, enters="garage")
    records.put_entry("card:1", HolderEntry(claims=(claim,)), 3)
    records.put_entry("card:2", HolderEntry(claims=(Claim("b", "gate-2", 1, leaves="garage"),)), 4)
    assert (records.inside("garage"), records.taken("garage")) == (3, 4)
    records.put_entry("card:1", HolderEntry((came_in(5),)), 5)
    assert records.taken("garage") == 3
    assert list(records.claims) == ["card:2"]
    assert records.elsewhere("gate-1") == GatewayCounts({"garage": -2}, {"garage": 7})
    assert records.entry("card:3") == (HolderEntry(), 0)


def test_ids_that_a_gateway_gave_are_its_own():
    for holder in ("card:7", "owner:9", "owner:card:-2"):
        assert shared_name("gate-1", holder) == holder
    for holder in ("card:-3", "card:2000000001"):
        assert shared_name("gate-1", holder) != shared_name("gate-2", holder)
        assert local_name("gate-1", shared_name("gate-1", holder)) == holder


def test_only_shared_areas_of_a_way_are_shared():
    assert shared_parts({"garage"}, Way(leaves="garage", enters="cellar")) == ("garage", "")


def test_the_last_passage_on_disk_is_told_if_it_is_newer():
    def found(place: Whereabouts, entry: HolderEntry) -> list[AreaStep]:
        return list(unknown_steps(entry, place, by="gate-1", areas={"garage"}))

    assert found(Whereabouts("garage", 5), HolderEntry()) == [came_in(5)]
    assert found(Whereabouts("", 5), HolderEntry((came_in(3),))) == [AreaStep(5, "gate-1")]
    assert not found(Whereabouts("", 5), HolderEntry((came_in(7),)))
    assert not found(Whereabouts("", 5), HolderEntry()), "nobody asks where those are who were never inside"


def test_a_share_may_fall_below_nought_and_a_count_may_not():
    presence = Presence(counts={"garage": -2})
    assert (presence.own("garage"), presence.count("garage")) == (-2, 0)
    presence.learn(elsewhere={"garage": 5}, opened={"garage": 9})
    assert presence.count("garage") == 3
    assert presence.opened_at("garage") == 9
