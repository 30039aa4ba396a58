# SPDX-License-Identifier: Apache-2.0
"""Services: what operators of a fragment share."""


class FragmentService:
    """A service of a fragment."""

    def __init__(self):
        self._resource = None

    @property
    def resource(self):
        return self._resource

    @resource.setter
    def resource(self, resource):
        self._resource = resource


class DefaultFragmentService(FragmentService):
    """A service that may hold a resource."""

    def __init__(self, resource=None, *args, **kwargs):
        self._resource = resource


class ServiceDriverEndpoint:
    def driver_start(self, driver_ip):
        pass

    def driver_shutdown(self):
        pass


class ServiceWorkerEndpoint:
    def worker_connect(self, driver_ip):
        pass

    def worker_disconnect(self):
        pass


class DistributedAppService(FragmentService, ServiceDriverEndpoint, ServiceWorkerEndpoint):
    """A service that the driver's process and those of workers take part in."""
