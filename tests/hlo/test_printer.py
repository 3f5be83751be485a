"""Printing of modules, computations and instructions."""

import hlo

TEXT = """HloModule sums, is_scheduled=true

FileNames
1 "a.py"

%plus (x: f32[], y: f32[]) -> f32[] {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(f32[] x, f32[] y), metadata={op_name="a // b"}
}

ENTRY main {
  p = f32[4]{0:T(128)} parameter(0),
    sharding={ /* two */ devices=[2]<=[2] }
  ROOT r = (f32[4], /*index=1*/f32[<=4]) call-me(p), to_apply=plus, dims={1, 0}
}, execution_thread="host"
"""
PRINTED = """HloModule sums, is_scheduled=true

FileNames
1 "a.py"

%plus {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y), metadata={op_name="a // b"}
}

ENTRY %main {
  %p = f32[4]{0:T(128)} parameter(0), sharding={ devices=[2]<=[2] }
  ROOT %r = (f32[4], f32[<=4]) call-me(%p), to_apply=plus, dims={1, 0}
}, execution_thread="host"
"""


def test_a_module_prints_without_comments_and_signatures() -> None:
    module = hlo.parse(TEXT)
    assert str(module) == PRINTED
    assert hlo.parse(PRINTED) == module


def test_parts_print_as_in_the_module() -> None:
    module = hlo.parse(TEXT)
    assert str(module.entry) in PRINTED
    assert str(module.entry.root) in PRINTED
    assert str(module.entry.root).startswith("%r = (f32[4], f32[<=4]) call-me(%p)")


def test_a_missing_shape_stays_missing() -> None:
    module = hlo.parse("ENTRY e { p = f32[] parameter(0) ROOT n = negate(p) }")
    assert str(module.entry.root) == "%n = negate(%p)"
    assert hlo.parse(str(module)) == module


def test_modules_with_different_text_are_unequal() -> None:
    module = hlo.parse(PRINTED)
    changes = {
        "sums": "sum",
        "true": "false",
        '"a.py"': '"b.py"',
        "%sum": "%total",
        "add(": "sub(",
        "add(%x, %y)": "add(%y, %x)",
        "T(128)": "T(64)",
        "f32[<=4]": "f32[4]",
        "dims={1, 0}": "dims={0, 1}",
        "parameter(1)": "parameter(2)",
        '"host"': '"device"',
        "  ROOT %sum": "  %sum",
    }
    for old, new in changes.items():
        changed = hlo.parse(PRINTED.replace(old, new))
        assert (changed == module) == (old == "  ROOT %sum"), (old, new)  # the last is the root
    assert module != "text"


def test_the_entry_need_not_be_last() -> None:
    module = hlo.parse("ENTRY a { p = f32[] parameter(0) } b { p = f32[] parameter(0) }")
    assert hlo.parse(str(module)) == module
    assert hlo.parse(str(module)).entry.name == "a"
