"""Which instruction became which: links that are found, and how many agree with ``op_name``.

    python -m benchmarks.correspondence FOLDER [--list]

reads ``FOLDER/NAME.pre.hlo`` and ``FOLDER/NAME.opt.hlo``, a program before and after a compiler,
and prints a row for all of them: instructions that have a link, of those of both modules; links
whose instructions both carry ``op_name``; those that agree in it, up to the names of calls around
them; and of the others, those of merged instructions.  An instruction was merged into another one
if the program before has an instruction with the ``op_name`` of the link's end and the same value:
the compiler keeps one of both names, as it removes common subexpressions.  The rest is counted by
whether both ends have proved-equal values, as a copy has that is named after another instruction;
``--list`` prints it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import hlo
from hlo.modules.module import Instruction, Module
from indexing.equivalence.correspondence import correspondence, executed_instructions
from indexing.equivalence.full_names import agree, full_names
from indexing.views.tables import align_columns


def counts_of(before: Module, after: Module, name: str, is_listed: bool) -> Counter[str]:
    """Return the number of instructions and links of two modules, by what they are."""
    matched = correspondence(before, after)
    names = full_names(executed_instructions(before)) | full_names(executed_instructions(after))
    ends = {link.before for link in matched.links} | {link.after for link in matched.links}
    counts = Counter(linked=len(ends), all=len(ends) + len(matched.removed) + len(matched.added))
    equal: dict[
        Instruction, list[Instruction]
    ] = {}  # by an instruction after, the names of those before that have its value
    for link in matched.links:
        if link.how == "value":
            equal.setdefault(link.after, []).append(link.before)
    for link in matched.links:
        ours, theirs = names.get(link.before, ()), names.get(link.after, ())
        if not ours or not theirs:
            continue
        counts["both"] += 1
        if agree(ours, theirs):
            counts["agree"] += 1
            continue
        if any(agree(names.get(twin, ()), theirs) for twin in equal.get(link.after, ())):
            counts["merged"] += 1
            continue
        counts["equal" if link.how == "value" else "other"] += 1
        if is_listed:
            print(
                f"{name}: {link}: {link.before.opcode} {ours[0]} | {link.after.opcode} {theirs[0]}"
            )
    return counts


def main() -> None:
    """Measure the programs of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for path in sorted(options.folder.glob("*.pre.hlo")):
        name = path.name.removesuffix(".pre.hlo")
        before, after = (hlo.load(path.with_name(f"{name}.{word}.hlo")) for word in ("pre", "opt"))
        total += counts_of(before, after, name, options.list)
    columns = ("linked", "op_name on both", "agree", "merged", "agree or merged")
    cells = [[*columns, "other, equal values", "other"]]
    right = total["agree"] + total["merged"]
    cells.append(
        [
            f"{total['linked']:,} of {total['all']:,} ({total['linked'] / total['all']:.1%})",
            f"{total['both']:,}",
            f"{total['agree']:,} ({total['agree'] / total['both']:.1%})",
            f"{total['merged']:,}",
            f"{right / total['both']:.1%}",
            str(total["equal"]),
            str(total["other"]),
        ]
    )
    print(*align_columns(cells), sep="\n")


if __name__ == "__main__":
    main()
