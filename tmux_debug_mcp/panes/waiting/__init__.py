"""Waiting for what a pane prints or does, and observing it.

`conditions` says what is waited for, `origins` where the wait begins. `wait` starts a watch of each
pane (`watching`); `observations` and `drawn_screen` make what it returns.
"""
