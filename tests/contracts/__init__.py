"""What everything in a registry has to keep, whoever registered it.

A contract is a function `check_...(subject)` that raises an AssertionError. The tests run every contract over every
entry of a registry, and over mutants: things that are broken in one known way, which the contract has to notice.
"""
