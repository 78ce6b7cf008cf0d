"""OBSERVE: which Kubernetes containers were given which GPUs, as the kubelet of this node tells.

Is: one gRPC call to the kubelet's pod-resources socket now and then, and the pure join of its device ids with GPUs.
Is not: a client of the API server, and no part of a GPU's reading: when the kubelet fails, the GPUs' series stay.
"""

from pinchpoint.sources.pods.attribution import attribute
from pinchpoint.sources.pods.devices import PodDevice
from pinchpoint.sources.pods.settings import PodSettings
from pinchpoint.sources.pods.source import PodSource, PodsReading

__all__ = ["PodDevice", "PodSettings", "PodSource", "PodsReading", "attribute"]
