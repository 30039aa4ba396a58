# SPDX-License-Identifier: Apache-2.0
"""Conditions and resources in Python; graphs name this file under extensions."""

import frag


class Times(frag.Condition):
    """Allows so many ticks, each at its second check."""

    def setup(self, spec):
        spec.param("limit", 3)
        self.calls, self.done, self.updates = [], 0, 0

    def initialize(self):
        self.calls.append("initialize %d" % self.limit)

    def start(self):
        self.calls.append("start")

    def update_state(self, timestamp):
        self.updates += 1

    def check(self, timestamp):
        if self.done == self.limit:
            return frag.Ready.NEVER
        if self.updates % 2:
            return frag.Ready.WAIT_TIME, timestamp + 1000
        return frag.Ready.READY

    def on_execute(self, timestamp):
        self.done += 1

    def stop(self):
        self.calls.append("stop after %d" % self.done)


class Table(frag.Resource):
    """A table that operators share."""

    def setup(self, spec):
        spec.param("size", 2)

    def initialize(self):
        self.items = [0] * self.size


class Counts(frag.Operator):
    """Counts its ticks in the table, and prints it at its end."""

    def setup(self, spec):
        spec.output("out")
        spec.param("table", None, kind="resource")
        spec.param("times", None, kind="condition")

    def initialize(self):
        assert self.table is self.resource(self.table.name)
        assert self.resource("nothing") is None and self.condition("nothing") is None

    def compute(self, op_input, op_output, context):
        self.table.items[0] += 1
        op_output.emit(self.table.items[0])

    def stop(self):
        print("counted", self.table.items, self.times.limit, self.times.done, flush=True)
