"""pinchpoint: why GPU inference is slow, and whether more GPUs would help.

Sources observe, diagnosis decides, outputs tell. From the roof down; imports point down only:

``cli``         a file per command: parsing, printing, exit codes
``daemon``      the life of the process: build, observe, decide, tell, drain
``config``      composes the settings that each part declares for itself; reports every mistake at once
``sources``     OBSERVE: GPUs (NVML), engines, probes, the host, pods, discovery, recordings
``outputs``     TELL: the metric catalog, the exposition, the web page, the recorder, the dashboards
``simulator``   a node that is not there, behind real HTTP; never sees the diagnosis that it judges
``scheduler``   the one door to APScheduler        ``logs``   one pipeline for our records and the libraries'
``alerting``    DECIDE, pure: the catalogue of alerts
``capacity``    PLAN, pure: would more GPUs help
``diagnosis``   DECIDE, pure: from a window to one class per engine, with evidence
``physics``     what a model and a card can do     ``snapshot``   the values that everybody passes around
"""

__version__ = "0.1.0"
