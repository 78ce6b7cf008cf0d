"""Engines that are pods of a Kubernetes cluster: the API server is asked once for a list, and watched from there.

Is not which GPUs a pod has (``sources/pods``, which asks the kubelet), and asks no engine anything.
"""

from pinchpoint.sources.discovery.kubernetes.settings import KubernetesSettings
from pinchpoint.sources.discovery.kubernetes.watcher import KubernetesWatcher

__all__ = ["KubernetesSettings", "KubernetesWatcher"]
