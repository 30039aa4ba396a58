# SPDX-License-Identifier: Apache-2.0
"""Rules of Holoscan's classes, row by row: what wins where two say something, and what is kept."""
import contextlib
import datetime
import io
import unittest

from frag.holoscan import install

install()
from holoscan.conditions import (BooleanCondition, CountCondition,  # noqa: E402
                                 DownstreamMessageAffordableCondition,
                                 ExpiringMessageAvailableCondition, MessageAvailableCondition,
                                 MultiMessageAvailableCondition, PeriodicCondition)
from holoscan.core import (Application, IOSpec, MetadataPolicy, Operator,  # noqa: E402
                           OperatorSpec)
from frag.holoscan._args import py_object_to_arg  # noqa: E402
from frag.holoscan._component import set_parameters  # noqa: E402
from frag.holoscan._metadata import MetadataDictionary  # noqa: E402
from holoscan.pose_tree import Pose3, PoseTree, PoseTreeAccessMethod  # noqa: E402
from holoscan.resources import DoubleBufferReceiver, UnboundedAllocator  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

MS = datetime.timedelta(milliseconds=1)


class Conditions(unittest.TestCase):
    def setUp(self):
        self.app = Application()

    def test_times_in_every_form(self):
        """An int is nanoseconds, a float seconds."""
        for given, ns in ((7, 7), (0, 0), (0.5, 500000000), (1e-9, 1), (5 * MS, 5000000),
                          (datetime.timedelta(days=1), 86400 * 10**9)):
            with self.subTest(given):
                periodic = PeriodicCondition(self.app, given)
                expiring = ExpiringMessageAvailableCondition(self.app, 3, given)
                self.assertEqual((periodic.recess_period_ns(), expiring.max_delay_ns()), (ns, ns))
                periodic, expiring = (PeriodicCondition(self.app, 99),
                                      ExpiringMessageAvailableCondition(self.app, 3, 99))
                periodic.recess_period(given)
                expiring.max_delay(given)
                self.assertEqual((periodic.recess_period_ns(), expiring.max_delay_ns()), (ns, ns))
                self.assertEqual((periodic._declare()["recess_period"],
                                  expiring._declare()["max_delay_ns"]), ("%dns" % ns, ns))
        for bad in (True, "5ms", None):
            for made in (lambda: PeriodicCondition(self.app, bad),
                         lambda: ExpiringMessageAvailableCondition(self.app, 3, bad),
                         lambda: PeriodicCondition(self.app, 1).recess_period(bad),
                         lambda: ExpiringMessageAvailableCondition(self.app, 3, 1).max_delay(bad)):
                with self.subTest(bad), self.assertRaises(TypeError):
                    made()

    def test_what_is_set_later_is_declared(self):
        app = self.app
        for condition, name in (
                (CountCondition(app, 3), "count"),
                (DownstreamMessageAffordableCondition(app, 3), "min_size"),
                (DownstreamMessageAffordableCondition(app), "transmitter"),
                (MessageAvailableCondition(app, 3), "min_size"),
                (MessageAvailableCondition(app), "receiver"),
                (ExpiringMessageAvailableCondition(app, 3, 1), "max_batch_size"),
                (ExpiringMessageAvailableCondition(app, 3, 1), "receiver"),
                (MultiMessageAvailableCondition(app, min_sum=3), "min_sum")):
            with self.subTest(type(condition).__name__, name=name):
                before = condition._declare()
                setattr(condition, name, 8)
                self.assertEqual(getattr(condition, name), 8)
                self.assertEqual(condition._declare(), {**before, name: 8})

    def test_a_boolean_follows_its_methods(self):
        condition = BooleanCondition(self.app)
        for method, value in (("disable_tick", False), ("enable_tick", True), ("disable_tick", False)):
            getattr(condition, method)()
            self.assertEqual((condition.check_tick_enabled(), condition._declare()),
                             (value, {"enable_tick": value}))

    def test_sizes_that_are_added(self):
        condition = MultiMessageAvailableCondition(self.app, "PerReceiver", min_sizes=[4])
        condition.add_min_size(5)
        self.assertEqual((condition.min_sizes, condition._declare()["min_sizes"]), ([4, 5], [4, 5]))


class Parameters(unittest.TestCase):
    def test_what_counts_of_several(self):
        """Arguments, the last one first; then a resource of that name; then the attribute."""
        app = Application()
        resource = UnboundedAllocator(app, name="pool")
        for arguments, resources, attribute, expected in (
                ([], [], None, "default"), ([], [], "attribute", "attribute"),
                ([], [resource], "attribute", resource), ([1], [resource], "attribute", 1),
                ([1, 2], [resource], None, 2), ([2, 1], [], "attribute", 1),
                ([0], [resource], None, 0)):
            with self.subTest(arguments=arguments, resources=len(resources), attribute=attribute):
                op = Operator(app, *resources)
                op.add_arg(*(py_object_to_arg(value, "pool") for value in arguments))
                if attribute is not None:
                    op.pool = attribute
                spec = OperatorSpec(app, op)
                spec.param("pool", "default")
                set_parameters(op, spec)
                self.assertEqual(op.pool, expected)


class Metadata(unittest.TestCase):
    def test_what_becomes_of_two(self):
        """Key b is in both."""
        ours, theirs = {"a": 1, "b": 2}, {"b": 20, "c": 30}
        kept, taken = {"a": 1, "b": 2, "c": 30}, {"a": 1, "b": 20, "c": 30}
        for method, policy, result, left in (
                ("insert", MetadataPolicy.RAISE, kept, theirs), ("merge", MetadataPolicy.RAISE, kept, {"b": 20}),
                ("update", MetadataPolicy.REJECT, kept, theirs), ("update", MetadataPolicy.UPDATE, taken, theirs),
                ("update", MetadataPolicy.INPLACE_UPDATE, taken, theirs),
                ("update", MetadataPolicy.RAISE, None, theirs), ("update", MetadataPolicy.DEFAULT, None, theirs),
                ("swap", MetadataPolicy.RAISE, theirs, ours)):
            with self.subTest(method, policy=policy):
                mine, other = self.of(ours), self.of(theirs)
                mine.policy = policy
                if result is None:
                    with self.assertRaisesRegex(RuntimeError, "duplicate metadata keys: 'b'"):
                        mine.update(other)
                else:
                    getattr(mine, method)(other)
                self.assertEqual((dict(mine.items()), dict(other.items())), (result or ours, left))
                mine["d"] = 4
                self.assertEqual(mine.has_key("d"), not other.has_key("d"))

    def of(self, items):
        dictionary = MetadataDictionary()
        for key, value in items.items():
            dictionary[key] = value
        return dictionary

    def test_what_is_taken_out(self):
        dictionary = self.of({"a": None, "b": 2})
        self.assertEqual((dictionary.get("a", 5), dictionary.get("c", 5), dictionary.pop("c", 6)), (None, 5, 6))
        self.assertEqual((dictionary.erase("a"), dictionary.erase("a"), dictionary.pop("b")), (True, False, 2))
        with self.assertRaises(KeyError):
            dictionary.pop("b")
        self.assertEqual(len(dictionary), 0)


class Ports(unittest.TestCase):
    def test_queues(self):
        """What a connector says is not said by the port."""
        app = Application()
        double, policy = IOSpec.ConnectorType.DOUBLE_BUFFER, IOSpec.QueuePolicy
        for size, own, connect, capacity, expected in (
                (1, None, None, 0, None), (2, None, None, 2, None),
                (IOSpec.ANY_SIZE, None, None, 0, None),
                (3, policy.REJECT, None, 3, policy.REJECT),
                (3, None, lambda port: port.connector(double, capacity=5), 5, None),
                (3, None, lambda port: port.connector(double), 1, None),
                (3, None, lambda port: port.connector(double, policy=0), 1, policy.POP),
                (3, None, lambda port: port.connector(double, capacity=5, policy=2), 5,
                 policy.FAULT),
                (3, policy.POP, lambda port: port.connector(DoubleBufferReceiver(app, 6, 1)), 6,
                 policy.REJECT)):
            with self.subTest(size=size, own=own, capacity=capacity, expected=expected):
                port = OperatorSpec(app, None).input("in", size=size, policy=own)
                if connect is not None:
                    self.assertIs(connect(port), port)
                self.assertEqual((port._capacity(), port._queue_policy()), (capacity, expected))

    def test_a_name_is_declared_once(self):
        spec = OperatorSpec(Application(), None)
        first = spec.input("in", size=2)
        with contextlib.redirect_stderr(io.StringIO()) as log:
            self.assertIs(spec.input("in", size=5), first)
        self.assertEqual((first.queue_size, list(spec.inputs)), (2, ["in"]))
        self.assertIn("already exists", log.getvalue())
        self.assertIsNot(spec.output("in"), first)  # an output may have that name


class Poses(unittest.TestCase):
    def setUp(self):
        self.tree = PoseTree()
        self.tree.init(history_length=1000)
        for name in "abc":
            self.tree.create_frame(name)

    def test_room_for_poses_is_given_back(self):
        """Of an edge, also by its frame, and of a try that failed."""
        tree = self.tree
        for end in (lambda: tree.delete_edge("a", "b"), lambda: tree.delete_edge("b", "a"),
                    lambda: (tree.delete_frame("b"), tree.create_frame("b"))):
            tree.create_edges("a", "b", 1000)
            with self.assertRaisesRegex(RuntimeError, "Out of Memory"):
                tree.create_edges("a", "c", 1)
            end()
        tree.create_edges("a", "b", 999)
        tree.create_edges("a", "c", 1)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_nearest_on_both_sides_of_the_middle(self):
        self.tree.create_edges("a", "b", 1000)
        for time, x in ((1, 1), (2, 3)):
            self.tree.set("a", "b", time, Pose3.from_translation([x, 0.0, 0.0]))
        for time, x in ((1, 1), (1.49, 1), (1.51, 3), (2, 3), (9, 3)):
            pose = self.tree.get("a", "b", time, PoseTreeAccessMethod.NEAREST)
            self.assertEqual(pose.translation[0], x, time)


if __name__ == "__main__":
    unittest.main()
