"""SBP signatures: the states of operands and results in which devices execute an instruction.

In comes an instruction or a computation; out come its valid signatures, each with a proof, or the
decision about one, with an element that breaks it.
Read `sbp_signatures.sbp` first, then `checks.check_signature`.
"""
