"""The progress of a reading program, by its requests: the mark is never above what it certainly has."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.read_cursors import UNASKED_SECONDS, PageAnswered, ReadProgress

PAGE = 3


@dataclass
class Site:
    """Events by id, newest last; ids have holes, as after a crash."""

    ids: list[int] = field(default_factory=list)

    def happen(self, step: int) -> None:
        self.ids.append((self.ids[-1] if self.ids else 0) + step)

    def page(self, cursor: int) -> tuple[list[int], PageAnswered]:
        below = [number for number in reversed(self.ids) if not cursor or number < cursor]
        page = below[:PAGE]
        told = PageAnswered(
            cursor=cursor,
            newest=self.ids[-1] if self.ids else 0,
            following=page[-1] if page else None,
            is_end=len(below) <= PAGE,
        )
        return page, told


@dataclass
class Program:
    """Reads as the interface says: from the newest down until an event comes that it has; what it has it keeps once a
    walk is whole. An answer may be lost, and the program may break off.
    """

    has: set[int] = field(default_factory=set)
    fetched: set[int] = field(default_factory=set)
    cursor: int = 0
    walk: list[int] = field(default_factory=list)

    def takes(self, page: list[int]) -> None:
        self.walk += page
        self.fetched |= set(page)
        if not page or self.has & set(page):
            self.has |= set(self.walk)
            self.walk, self.cursor = [], 0
        else:
            self.cursor = page[-1]

    def breaks_off(self) -> None:
        self.walk, self.cursor = [], 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("happens"), st.integers(1, 3)),
        st.tuples(
            st.sampled_from(("asks", "asks", "asks", "asks", "loses", "breaks off", "crash", "saved")), st.just(0)
        ),
    ),
    max_size=120,
)


@given(STEPS)
def test_a_mark_is_never_above_what_was_fetched_and_comes_up_to_it(steps):
    site, program, progress, stored = Site(), Program(), ReadProgress(), ReadProgress()
    began: int | None = None  # what was there before the first walk is not waited for
    taken = False

    def ask(lost: bool) -> None:
        nonlocal progress, taken, stored, began
        progress = progress.asks(program.cursor, acknowledged=taken, uptime=0.0)
        page, told = site.page(program.cursor)
        first = progress.mark is None
        progress = progress.answered(told)
        if first and progress.mark is not None:
            stored = ReadProgress(mark=progress.mark)  # on disk before the answer goes
            began = page[-1] - 1 if page else told.newest
        taken = not lost
        if not lost:
            program.takes(page)

    def check() -> None:
        if progress.mark is None or began is None:
            return
        assert progress.mark >= began
        missing = [number for number in site.ids if began < number <= progress.mark and number not in program.fetched]
        assert not missing, (progress, missing)

    for step, much in steps:
        match step:
            case "happens":
                site.happen(much)
            case "asks" | "loses":
                ask(step == "loses")
            case "breaks off":
                program.breaks_off()
            case "saved":
                stored = ReadProgress(mark=progress.mark)
            case "crash":  # of the gateway: what was not written is forgotten, the answer under way is lost
                progress, taken = stored, False
        check()
    program.breaks_off()
    for _ in range(3 * len(site.ids) + 6):  # left in peace, it reads on, and its mark follows once it has come down
        site.happen(1) if len(site.ids) % 7 == 0 else None
        ask(lost=False)
        check()
    # Only where a crash or a lost answer has left the mark below what the program has, does it not follow at once.
    assert not site.ids or progress.mark == progress.top or progress.short_top


def test_a_walk_that_breaks_off_moves_nothing():
    progress = ReadProgress(mark=10)
    progress = progress.answered(PageAnswered(cursor=0, newest=40, following=31, is_end=False))
    progress = progress.asks(31, acknowledged=True, uptime=0.0).answered(PageAnswered(31, 40, 21, is_end=False))
    assert progress.mark == 10
    assert progress.asks(0, acknowledged=True, uptime=0.0).mark == 10  # (10, 21) was never asked for
    met = progress.asks(21, acknowledged=False, uptime=0.0).answered(PageAnswered(21, 40, 9, is_end=False))
    assert met.mark == 10
    assert met.asks(0, acknowledged=False, uptime=0.0).mark == 10  # the last answer may be lost
    assert met.asks(31, acknowledged=True, uptime=0.0).mark == 10  # asked for again, or by somebody else
    assert met.asks(0, acknowledged=True, uptime=0.0).mark == 40
    assert met.asks(9, acknowledged=False, uptime=0.0).mark == 40


def test_a_page_asked_for_twice_and_a_stranger_walk_do_not_matter():
    progress = ReadProgress(mark=10).answered(PageAnswered(0, 40, 31, is_end=False))
    progress = progress.asks(31, acknowledged=True, uptime=0.0).answered(PageAnswered(31, 40, 21, is_end=False))
    again = progress.asks(31, acknowledged=False, uptime=0.0).answered(PageAnswered(31, 40, 21, is_end=False))
    assert again == progress
    stranger = progress.asks(15, acknowledged=True, uptime=0.0).answered(PageAnswered(15, 40, 5, is_end=True))
    assert stranger == progress


def test_a_mark_that_was_set_back_follows_a_reader_that_does_not_ask_for_the_rest():
    progress = ReadProgress(mark=10)
    day = 86_400.0
    for uptime in (0.0, day, UNASKED_SECONDS - 1, UNASKED_SECONDS + 1, UNASKED_SECONDS + day):
        newest = 100 + int(uptime)
        progress = progress.asks(0, acknowledged=True, uptime=uptime).answered(
            PageAnswered(0, newest, newest - 20, is_end=False)
        )
    assert progress.mark == 100  # what was there a week before; not what has come since
