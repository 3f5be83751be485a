"""Comparison of the element formulas of two programs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from indexing.equivalence.values.folds.set_folds import SetFolds
from indexing.equivalence.values.formulas.applications import Arguments, Frame
from indexing.equivalence.values.formulas.elements import MAX_COPIED_TERMS, Elements
from indexing.equivalence.values.formulas.numbering import NoFormula, NumberedArray, Numbering
from indexing.equivalence.values.formulas.sorts import STABLE
from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.equivalence.values.matching.matching import (
    MAX_CASES,
    MAX_COMPARED,
    MAX_EXPANDED_CASES,
    ROUNDED_ONCE,
    Matching,
    UnequalTerms,
)
from indexing.equivalence.values.matching.residuals import reason_of, texts_of
from indexing.equivalence.values.outputs import (
    has_narrow,
    may_expand,
    module_of,
    numbered_outputs,
    references,
)
from indexing.equivalence.values.results import (
    EqualFormulas,
    Residual,
    Roundings,
    ValueResult,
    directed_result,
    drops_roundings,
    judged_roundings,
)
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.arrays import ArrayRef, Path

OutputPairs: TypeAlias = Sequence[tuple[NumberedArray, NumberedArray]]
"""The outputs of two programs, before and after."""


def compare_values(
    before: Computation | Sequence[ArrayRef],
    after: Computation | Sequence[ArrayRef],
    *,
    exact_arithmetic: bool = False,
    parameters: Mapping[int, int] | None = None,
) -> list[ValueResult]:
    """Compare the element formulas of two programs, output leaf by output leaf.

    Args:
        before, after: computations, or arrays of one computation each.
        exact_arithmetic: use only laws that are valid for every value of the type.
        parameters: the number of the parameter in `before`, for parameters of `after` with another
            number.
    Raises:
        HloError: a program is invalid.
        ValueError: the programs have a different number of outputs.

    >>> import hlo, indexing.ops
    >>> one = hlo.parse('''ENTRY e { p = f32[2,3] parameter(0)  n = f32[2,3] negate(p)
    ...   ROOT t = f32[3,2] transpose(n), dimensions={1,0} }''')
    >>> two = hlo.parse('''ENTRY e { p = f32[2,3] parameter(0)
    ...   t = f32[3,2] transpose(p), dimensions={1,0}  ROOT n = f32[3,2] negate(t) }''')
    >>> list(map(bool, compare_values(one.entry, two.entry)))
    [True]
    """
    return ValueComparison(exact_arithmetic=exact_arithmetic).results(before, after, parameters)


class SharedFormulas:
    """Formulas that are closed where they are read at other indices, for comparisons by exact laws.

    In a scan by pairs, each array is read at two indices by the next one.  A formula that is copied
    for each index has as many terms as the array has elements; if it is closed, a few.  Equal
    formulas may be closed in other parts, so formulas that are not equal here may be equal.
    """

    def __init__(self, numbering: Numbering) -> None:
        self.elements = Elements(numbering, shares=True)
        self.matching = Matching(SetFolds(self.elements.algebra))
        self.arguments: dict[tuple[int, Path], Formula] = {}
        self.frame = Frame(self.arguments)
        self.has_proof = False

    def equal(self, before: NumberedArray, after: NumberedArray, arguments: Arguments) -> bool:
        """Return True if the formulas of two arrays are proved equal.

        Args:
            arguments: elements of symbols for the parameters.
        """
        table = self.elements.table
        for key, term in arguments.items():
            if key not in self.arguments:
                assert term.array is not None
                symbol = table.array("symbol", term.array.head, term.type, term.array.dims)
                self.arguments[key] = table.read(symbol, term.index)
        try:
            bodies = [self.elements.body(array, self.frame) for array in (before, after)]
        except NoFormula:
            return False
        is_equal = self.matching.equal(*bodies)
        self.has_proof |= is_equal
        return is_equal


class ValueComparison:
    """Comparisons of several programs; what they have in common is computed once.

    Value numbers, formulas, normal forms and compared pairs of terms are kept.  A result that may
    depend on earlier programs, because a budget is exceeded or constants were rounded, is computed
    again without them.

    Args:
        exact_arithmetic: use only laws that are valid for every value of the type.
        expands: replace ops by their definitions.
        roundings: what is done with roundings to a narrower type: they are kept, so that only the
            program before may round more; in addition, added to the factors of products of default
            precision; or dropped in both programs.  None: what proves most outputs.
        divide: compares the first outputs, or all, with the help of other processes.
    """

    def __init__(
        self,
        *,
        exact_arithmetic: bool = False,
        expands: bool = False,
        roundings: Roundings | None = None,
        divide: Callable[[ValueComparison, OutputPairs], None] | None = None,
    ) -> None:
        self.divide = divide
        self.exact_arithmetic, self.expands, self.roundings = exact_arithmetic, expands, roundings
        self.done: list[ValueResult] = []
        """The comparisons of the outputs of the last programs so far."""
        self._others: dict[Roundings, ValueComparison] = {}
        self._forget()

    def _forget(self) -> None:
        self.numbering = Numbering()
        rounds_factors = self.roundings == "added to factors"
        self.elements = Elements(
            self.numbering, expands=self.expands, rounds_factors=rounds_factors
        )
        self.arguments: dict[tuple[int, Path], Formula] = {}
        self.frame = Frame(self.arguments)
        keeps = self.roundings != "dropped"
        algebra = RealAlgebra(
            self.elements.algebra, exact_arithmetic=self.exact_arithmetic, keeps_roundings=keeps
        )
        self.normal = Normalising(algebra)
        self.shared = SharedFormulas(self.numbering)
        cases = MAX_EXPANDED_CASES if self.expands else MAX_CASES
        self.exact = Matching(SetFolds(self.elements.algebra), max_cases=cases)
        folds = SetFolds(algebra)
        self.matching, self.quick = (
            Matching(folds, algebra.reassociates, keeps, is_quick=is_quick, max_cases=cases)
            for is_quick in (False, True)
        )
        self._cases_of_proofs = 0
        self._programs: dict[Hashable, list[NumberedArray]] = {}
        self._modules: tuple[Module | None, Module | None] = None, None

    def results(
        self,
        before: Computation | Sequence[ArrayRef],
        after: Computation | Sequence[ArrayRef],
        parameters: Mapping[int, int] | None = None,
    ) -> list[ValueResult]:
        """Return the comparison of each output; arguments as of `compare_values`."""
        results = self._formula_results(before, after, parameters)
        if all(results) or (self.roundings is not None and not self.expands):
            return results
        results = self._with_roundings(results, before, after, parameters)
        is_open = any(isinstance(r, Residual) and r.in_the_reals is None for r in results)
        if not is_open or self.expands or not may_expand(before, after):
            return results
        return self._expanded_results(results, before, after, parameters)

    def _expanded_results(
        self,
        results: list[ValueResult],
        before: Computation | Sequence[ArrayRef],
        after: Computation | Sequence[ArrayRef],
        parameters: Mapping[int, int] | None,
    ) -> list[ValueResult]:
        """Return results in which outputs that are not proved are compared by definitions."""
        ours, theirs = references(before), references(after)
        if not len(results) == len(ours) == len(theirs):
            return results
        numbers = [k for k, result in enumerate(results) if not result]

        def expand(roundings: Roundings) -> tuple[list[ValueResult], Mapping[str, int]]:
            comparison = ValueComparison(
                exact_arithmetic=self.exact_arithmetic, expands=True, roundings=roundings
            )
            mine, other = ([each[k] for k in numbers] for each in (ours, theirs))
            own = comparison.results(mine, other, parameters)
            return own, comparison.elements.trusted

        expanded, trusted = expand("dropped")
        if STABLE in trusted:  # a sort has one order in all outputs
            if len(numbers) < len(ours):
                numbers = list(range(len(ours)))
                expanded, trusted = expand("dropped")
            if not all(expanded):
                return results
        if len(expanded) != len(numbers):
            return results
        if any(map(drops_roundings, expanded)):
            directed, _ = expand("added to factors")
            if len(directed) == len(numbers):
                expanded = list(map(directed_result, expanded, directed))
        better = {k: b for k, b in zip(numbers, expanded, strict=True) if b or trusted}
        return [a or better.get(k, a) for k, a in enumerate(results)]

    def _formula_results(
        self,
        before: Computation | Sequence[ArrayRef],
        after: Computation | Sequence[ArrayRef],
        parameters: Mapping[int, int] | None,
    ) -> list[ValueResult]:
        """Return the comparison of each output, without definitions of ops."""
        is_first = not self._programs
        results = self._results(before, after, parameters or {}, stops=not is_first)
        if not is_first and not all(map(is_independent, results)):
            self._forget()
            results = self._results(before, after, parameters or {}, stops=False)
        return results

    def _with_roundings(
        self,
        results: list[ValueResult],
        before: Computation | Sequence[ArrayRef],
        after: Computation | Sequence[ArrayRef],
        parameters: Mapping[int, int] | None,
    ) -> list[ValueResult]:
        """Return results in which roundings to a narrower type are judged."""
        ours, theirs = references(before), references(after)
        is_judged = self.roundings is None and not self.exact_arithmetic
        if not is_judged or not len(results) == len(ours) == len(theirs):
            return results
        if not has_narrow(ours, theirs):
            return results

        def compare(roundings: Roundings, numbers: Sequence[int]) -> list[ValueResult]:
            if roundings == "added to factors" and self._rounds_no_factors(results):
                return [results[k] for k in numbers]
            if roundings not in self._others:
                self._others[roundings] = ValueComparison(roundings=roundings)
            mine, other = ([each[k] for k in numbers] for each in (ours, theirs))
            return self._others[roundings].results(mine, other, parameters)

        return judged_roundings(results, compare)

    def _results(
        self,
        before: Computation | Sequence[ArrayRef],
        after: Computation | Sequence[ArrayRef],
        parameters: Mapping[int, int],
        *,
        stops: bool,
    ) -> list[ValueResult]:
        """Return the comparison of each output.

        Args:
            stops: end after the first result that is not independent of earlier comparisons.
        """
        try:
            ours, theirs = self._number_program(before, {}), self._number_program(after, parameters)
        except NoFormula as error:
            return [Residual("", "", None, error.unknown.reason)]
        if len(ours) != len(theirs):
            counts = f"{len(ours)} outputs before, {len(theirs)} after"
            raise ValueError(f"{counts}: expected equal numbers")
        if all(a is b for a, b in zip(ours, theirs, strict=True)):
            return [EqualFormulas(is_structural=True)] * len(ours)
        self.arguments.update(self.elements.symbols([*ours, *theirs], "parameter"))
        self._modules = module_of(before), module_of(after)
        self.elements.modules = self._modules
        self.done = []
        pairs = list(zip(ours, theirs, strict=True))
        if self.divide is not None:
            self.divide(self, pairs)
        self.compare_until(len(pairs), pairs, stops=stops)
        return self.done

    def compare_until(self, stop: int, pairs: OutputPairs, *, stops: bool = False) -> None:
        """Compare further outputs, up to number `stop`.

        Args:
            stops: end after the first result that is not independent of earlier comparisons.
        """
        matchings = self.exact, self.quick, self.matching
        for before, after in pairs[len(self.done) : stop]:
            cases = sum([each.case_count for each in matchings])
            result = self._compare_arrays(before, after)
            self.done.append(result)
            if result:
                self._cases_of_proofs += sum([each.case_count for each in matchings]) - cases
            if stops and not is_independent(result):
                return

    def _rounds_no_factors(self, results: Sequence[ValueResult]) -> bool:
        """Return True if roundings that are added to factors prove no more outputs.

        The formulas are the same if all factors are rounded, and so are the limits if those proofs
        which are not repeated did not count against them.
        """
        compared = [len(each.compared) for each in (self.exact, self.quick, self.matching)]
        is_within = not self._cases_of_proofs and max(compared) < MAX_COMPARED
        has_formulas = all(not isinstance(r, Residual) or r.difference for r in results)
        return is_within and has_formulas and not self.elements.has_wide_factors

    def _number_program(
        self, program: Computation | Sequence[ArrayRef], parameters: Mapping[int, int]
    ) -> list[NumberedArray]:
        key = program if isinstance(program, Computation) else tuple(program)
        numbers = tuple(sorted(parameters.items()))
        if (key, numbers) not in self._programs:
            self._programs[key, numbers] = numbered_outputs(self.numbering, program, parameters)
        return self._programs[key, numbers]

    def _compare_arrays(self, before: NumberedArray, after: NumberedArray) -> ValueResult:
        if before is after:
            return EqualFormulas(is_structural=True)
        if before.shape is None or after.shape is None:
            return Residual("", "", None, "tokens are made by different instructions")
        if before.shape.dims != after.shape.dims:
            return Residual(str(before.shape), str(after.shape), None, "the shapes differ")
        elements, normal = self.elements, self.normal
        is_small = self.expands or elements.rounds_factors or self._is_small(before, after)
        if not is_small and self.shared.equal(before, after, self.arguments):
            return EqualFormulas()
        try:
            ours, theirs = elements.body(before, self.frame), elements.body(after, self.frame)
        except NoFormula as error:
            return Residual("", "", None, error.unknown.reason)
        if self.exact.equal(ours, theirs):
            return EqualFormulas(MappingProxyType(dict(elements.trusted)))
        simple, other = normal(ours), normal(theirs)
        for matching in (self.quick, self.matching):
            if matching.equal(simple, other):
                laws = normal.uses(ours, theirs) + matching.laws(simple, other) + elements.trusted
                return EqualFormulas(MappingProxyType(dict(sorted(laws.items()))))
        pair = self.matching.residual(simple, other)
        return Residual(*texts_of(pair), pair.difference, reason_of(pair, self._sources(pair)))

    def _sources(self, pair: UnequalTerms) -> tuple[Instruction | None, Instruction | None]:
        """Return the instructions of both programs that compute two opaque arrays, if any do."""
        before, after = zip(self._modules, (pair.before, pair.after), strict=True)
        return self._source(*before), self._source(*after)

    def _source(self, module: Module | None, term: Formula) -> Instruction | None:
        array = term.array if term.array is not None else term
        made = [
            number
            for opaque, numbers in self.elements.origins.items()
            if opaque == array.number or self.normal.renamed_term(opaque) is array
            for number in numbers
        ]
        return None if module is None else self.numbering.instruction_in(module, made)

    def _is_small(self, before: NumberedArray, after: NumberedArray) -> bool:
        """Return True if the formulas of two arrays are known within a smaller limit on terms."""
        elements = self.elements
        limit, elements.limit = elements.limit, MAX_COPIED_TERMS
        try:
            for array in (before, after):
                elements.body(array, self.frame)
        except NoFormula:
            return False
        finally:
            elements.limit = limit
        return True


def is_independent(result: ValueResult) -> bool:
    """Return True if a result is the same whatever was compared before."""
    return isinstance(result, EqualFormulas) and ROUNDED_ONCE not in result.laws
