"""The experiments that a slider repeats, compiled; `mirror` and `bandit` stay the ones to read.

A function here has the name, the arguments and the results of the readable one, so that importing
it from here instead is all that a figure has to change.
"""
