"""Atoms are unique if several threads construct them at the same time."""

from __future__ import annotations

import gc
from collections.abc import Hashable
from threading import Thread, get_ident
from typing import Any

from simplifier import trace
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum
from simplifier.unique_table import UniqueTable
from tests.compiled import interpreted_only
from tests.threads import in_threads


def expressions(batch: int) -> list[Expr]:
    """Construct atoms of each kind, and some that the tables soon discard."""
    made = []
    for k in range(12):
        a, b = Variable(f"a{batch}_", 0, 97 + k), Variable(f"b{batch}_", 0, 5 + k)
        inner = (a * 3 + b) // 7
        made += [as_expr(a), inner, (inner * 5 + b) // 11, minimum(a, b * 4), maximum(a * b, inner)]
        for n in range(4):
            Variable(f"discarded{batch}_{n}_", 0, k)
    return made


def test_equal_atoms_are_one_object_in_all_threads() -> None:
    for results in zip(*in_threads(expressions, 40), strict=True):
        for equal in zip(*results, strict=True):
            assert len({frozenset(map(id, expr.parts)) for expr in equal}) == 1


class Thing:
    """An object that may refer to another one."""

    def __init__(self, other: Thing | None = None) -> None:
        self.other = other


class Adding:
    """Garbage whose finaliser adds to a table, as another thread may during a collection."""

    def __init__(self, table: UniqueTable[Thing]) -> None:
        self.itself, self.table = self, table

    def __del__(self) -> None:
        self.table.add("added", Thing())


def test_a_table_is_purged_while_objects_are_added() -> None:
    table = UniqueTable[Thing]()
    kept = {table.add(k, Thing()): k for k in range(200)}
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(20)
    try:
        Adding(table)
        table.purge()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()  # the finaliser adds an object
    table.purge()
    assert [*table.objects] == [*kept.values()]


def test_one_pass_removes_objects_and_those_that_only_they_refer_to() -> None:
    table = UniqueTable[Thing]()
    last = None
    for k in range(50):
        last = table.add(k, Thing(last))
    table.purge()
    assert [*table.objects] == [*range(50)]
    del last
    table.purge()
    assert not table.objects


class Interleaved(dict[Hashable, Any]):
    """Objects of a table that two threads look up and add again while they are removed."""

    table: UniqueTable[Thing]
    adding: Thread

    def pop(self, key: Hashable) -> Any:  # type: ignore[override]
        one = super().pop(key)
        if key == "one":
            self.held = one
            self.adding = Thread(target=self.add_again, args=[key])
            self.adding.start()
            self.adding.join(0.05)  # it waits for the end of the purge
        return one

    def add_again(self, key: Hashable) -> None:
        self.added = self.table.add(key, Thing())


@interpreted_only
def test_an_object_that_other_threads_use_while_it_is_removed_stays() -> None:
    table = UniqueTable[Thing]()
    table.objects = objects = Interleaved()
    objects.table = table
    table.add("one", Thing())
    table.purge()
    objects.adding.join()
    assert objects["one"] is objects.held is objects.added


def laws(batch: int) -> tuple[str, list[str]]:
    """Return the name of a variable of this thread, and the expressions to which laws apply."""
    own = Variable(f"t{batch}_{get_ident()}_", 0, 9)
    with trace.record_laws() as applied:
        for n in range(5):
            as_expr(own * (8 + n) + 3) // 4
    return own.name, [each.before for each in applied]


def test_a_record_has_the_laws_of_its_thread() -> None:
    for results in in_threads(laws, 20):
        for own, texts in results:
            assert texts
            assert all(own in text for text in texts)
    assert not trace.records
