"""OBSERVE: I/O in. Each source yields frozen readings, or an ``Absence`` with a reason from a closed set.

A source works; whoever runs it measures. Sources don't know each other (a recording is scrapes on disk, so it alone uses
the engine room's parser) and decide nothing.
"""
