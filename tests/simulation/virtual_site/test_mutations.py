"""Guards that are broken on purpose are found; every mutation of the table still fits the source."""

from __future__ import annotations

from dataclasses import replace

import mutations
import pytest
from mutation_table import MUTATIONS, Mutation

pytestmark = pytest.mark.long("whole simulations, one for each planted fault")

QUICK = ("active safety point ignored", "clear time ignored", "sent again without a look")


def test_every_mutation_fits_the_source():
    mutations.check_table()


def test_a_mutation_that_fits_no_more_is_an_error():
    moved = replace(MUTATIONS[0], old="this was never there")
    with pytest.raises(mutations.DoesNotApply, match="0 times"):
        mutations.check_table([moved])


@pytest.mark.parametrize(
    ("tests", "said"),
    [(("tests/gateway/domain/test_plates.py",), "pytest ended with"), ((), "the simulation of seed 11 ended with 1")],
)
def test_what_could_not_run_shows_nothing(tests, said):
    unreadable = Mutation(
        1,
        "a module that cannot be read",
        "gateway/domain/plates.py",
        "from __future__ import annotations",
        "from",
        tests,
    )
    with pytest.raises(mutations.DidNotRun, match=said):
        mutations.try_mutation(unreadable, days=1.0, lanes=1, seeds=(11,), all_seeds=False)


def test_each_promise_has_three_mutations():
    of_promises = [mutation.promise for mutation in MUTATIONS]
    assert {promise: of_promises.count(promise) >= 3 for promise in range(1, 11)} == dict.fromkeys(range(1, 11), True)


@pytest.mark.parametrize("name", QUICK)
def test_a_mutation_is_found(name):
    mutation = next(one for one in MUTATIONS if one.name == name)
    verdict = mutations.try_mutation(mutation, days=1.0, lanes=4, seeds=(11, 12, 13), all_seeds=False)
    assert verdict.found, verdict
