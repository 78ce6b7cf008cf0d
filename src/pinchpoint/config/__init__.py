"""The configuration: composes the settings that each part declares for itself, and reports every mistake at once.

Order, the stronger first: flags, ``PINCHPOINT_…`` environment (``PINCHPOINT_WEB__LISTEN_ADDRESS``), the secrets folder
(one file per setting, named like the variable), the YAML file, the shared settings (``VLLM_…`` and ``TAOTOKEN_…`` from
the environment, then from a settings.json), the defaults. A reload builds a new ``Settings``; the one in use is never
changed. Is not the home of a setting: that is the ``settings.py`` of the part that uses it.
"""

from pinchpoint.config.problem import ConfigError, Problem
from pinchpoint.config.provenance import Provenance, provenance
from pinchpoint.config.settings import ENV_PREFIX, Loaded, Settings, load, read

__all__ = ["ENV_PREFIX", "ConfigError", "Loaded", "Problem", "Provenance", "Settings", "load", "provenance", "read"]
