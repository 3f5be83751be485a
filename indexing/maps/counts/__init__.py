"""Counts in closed form: points, distinct results and read counts of a map, without enumeration.

* `tally`: the number of results for each number of points, and the arithmetic of such tallies;
* `forms`: results and constraints in the form that is counted, and changes that keep counts;
* `digits`: changes of variables that remove divisions;
* `linear`: sums of variables;
* `sums`: the values of a sum, counted together;
* `closed`: the tally of a map, from these;
* `symbolic`: formulas of symbolic sizes;
* `queries`: the functions for users.

The closed forms apply to affine expressions.  Each step is a bijection of points or of results, so
no count changes; where no step applies, there is no answer, and the caller enumerates or uses ISL.
"""
