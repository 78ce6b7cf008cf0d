"""OBSERVE: I/O in. Each source yields frozen readings, or an ``Absence`` with a reason from a closed set.

A source works; whoever runs it measures. Sources decide nothing and don't know each other; a recording alone, which is
scrapes on disk, uses the engine room's parser.
"""
