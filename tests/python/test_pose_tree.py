# SPDX-License-Identifier: Apache-2.0
"""The pose tree of Holoscan's programs. Its figures are those that Holoscan 3.11 gives."""

import math
import os
import unittest
from unittest import mock

from frag import holoscan

holoscan.install()

from holoscan.core import Application, Fragment  # noqa: E402
from holoscan.pose_tree import (  # noqa: E402
    SO2, SO3, Pose2, Pose3, PoseTree, PoseTreeAccessMethod as Method, PoseTreeManager)

try:
    import numpy as np
except ImportError:
    np = None


@unittest.skipUnless(np, "numpy is not installed")
class Poses(unittest.TestCase):
    def near(self, got, wanted):
        np.testing.assert_allclose(got, wanted, atol=1e-9)

    def test_rotations(self):
        turn = SO3.from_axis_angle(np.array([0, 0, 1.0]), 0.5)
        self.assertEqual(repr(turn), "SO3(quaternion=       0        0 0.247404 0.968912)")
        both = SO3.from_axis_angle(np.array([1.0, 0, 0]), 1.9) @ SO3.from_axis_angle([0, 0, 1], 0.2)
        self.near(both.axis(), [0.9924781354, -0.0995799683, 0.0712108182])
        self.near(both.angle(), 1.9071360726486217)
        for some in (both, turn, SO3(), SO3.from_matrix(np.diag([1.0, -1, -1])),
                     SO3.from_matrix(np.diag([-1.0, 1, -1]))):
            self.near(SO3.from_matrix(some.matrix()).matrix(), some.matrix())
            self.near((some @ some.inverse()).matrix(), np.eye(3))
        self.near(SO3.from_axis_angle([0, 1, 0], 0.3).euler_angles_rpy(), [0, 0.3, 0])
        self.near((SO2.from_angle(2.0) @ SO2.from_angle(2.0)).angle(), 4 - 2 * math.pi)
        self.near(SO2.from_direction([3.0, 4.0]).sin(), 0.8)

    def test_poses(self):
        pose = Pose2.from_xy_a(1, 2, 0.3)
        self.assertEqual(repr(pose.inverse()), "Pose2d(translation=-1.54638 -1.61515, rotation=-0.3)")
        self.near(pose * [1.0, 2.0], [1.3642960758, 4.2061931849])
        self.near(Pose2.from_matrix(pose.matrix()).matrix(), pose.matrix())
        first = Pose3(SO3.from_axis_angle([0, 0, 1], 0.2), np.array([1.0, 2, 3]))
        self.near(first * [1.0, 2, 3], [1.5827279163, 4.1588024865, 6])
        self.near((first @ first.inverse()).translation, np.zeros(3))
        self.near(Pose3.from_pose2_xy(pose).to_pose2_xy().matrix(), pose.matrix())

    def test_between_two(self):
        tree = PoseTree()
        tree.init()
        tree.create_frame("a")
        tree.create_frame("b")
        tree.set("a", "b", 1.0, Pose3(SO3.from_axis_angle([0, 0, 1], 0.2), [1.0, 2, 3]))
        tree.set("a", "b", 2.0, Pose3(SO3.from_axis_angle([1, 0, 0], 1.9), [4.0, 2, 1]))
        turned = [0.2814681368, 0, 0.0757820000, 0.9565734558]
        beyond = [0.9962012572, 0, -0.0757820000, -0.0428968956]
        for method, time, translation, quaternion in (
            (Method.DEFAULT, 1.3, [1.9, 2, 2.4], turned),
            (Method.INTERPOLATE_SLERP, 1.3, [1.9453820187, 1.6293511200, 2.5141885151], turned),
            (Method.NEAREST, 1.3, [1, 2, 3], [0, 0, math.sin(0.1), math.cos(0.1)]),
            (Method.NEAREST, 1.6, [4, 2, 1], [math.sin(0.95), 0, 0, math.cos(0.95)]),
            (Method.PREVIOUS, 1.9, [1, 2, 3], [0, 0, math.sin(0.1), math.cos(0.1)]),
            (Method.DEFAULT, 2.7, [4, 2, 1], [math.sin(0.95), 0, 0, math.cos(0.95)]),
            (Method.EXTRAPOLATE_LINEARLY, 2.7, [6.1, 2, -0.4], beyond),
            (Method.EXTRAPOLATE_SLERP, 2.7, [6.0201605122, 3.5722085158, 0.6858115395], beyond),
        ):
            with self.subTest(method=str(method), time=time):
                pose = tree.get("a", "b", time, method)
                self.near(pose.translation, translation)
                self.near(pose.rotation.quaternion, quaternion)
        with self.assertRaisesRegex(RuntimeError, "Frames are not linked"):
            tree.get("a", "b", 0.5)


@unittest.skipUnless(np, "numpy is not installed")
class Trees(unittest.TestCase):
    def setUp(self):
        self.tree = PoseTree()
        self.tree.init(number_frames=4, default_number_edges=2, history_length=4000)
        self.a, self.b, self.c = (self.tree.create_frame(name) for name in "abc")

    def fails(self, sentence, function, *args):
        with self.assertRaisesRegex(RuntimeError, sentence):
            function(*args)

    def at(self, x):
        return Pose3.from_translation([x, 0.0, 0.0])

    def test_what_is_refused(self):
        tree = self.tree
        self.assertEqual(tree.set("a", "b", 1.0, self.at(1)), tree.get_pose_tree_version())
        tree.set("b", "c", 1.0, self.at(2))
        self.fails("Cycling dependency", tree.set, "a", "c", 1.0, self.at(3))
        self.fails("Cycling dependency", tree.create_edges, "a", "a")
        self.fails("Pose updated out of order", tree.set, "a", "b", 1.0, self.at(1))
        self.fails("Frame not found", tree.get, "a", "d")
        self.fails("already exists", tree.create_frame, "a")
        self.fails("already exists", tree.create_edges, "b", "a")
        self.assertEqual(tree.create_frame_with_id(9), 9)
        self.assertEqual(tree.get_frame_name(9), "_frame_9")
        self.fails("Out of Memory", tree.create_frame)
        self.fails("Out of Memory", tree.create_edges, 9, "c", 2000)
        self.fails("Out of Memory", tree.create_edges, 9, "b", 10)  # b has its two edges
        tree.create_edges(9, "c", 900)
        self.fails("Invalid Argument", PoseTree().init, 0)

    def test_what_was_before(self):
        """Disconnecting ends an edge from a time on; a version knows nothing that is newer."""
        tree = self.tree
        tree.set("a", "b", 1.0, self.at(1))
        version = tree.set("c", "b", 1.0, self.at(2))
        tree.set("a", "b", 2.0, self.at(10))
        self.assertEqual(tree.get("a", "c", 2.0).translation[0], 8)
        self.assertEqual(tree.get("a", "c", 2.0, version=version).translation[0], -1)
        self.fails("not linked", tree.get, "a", "b", 1.0, Method.DEFAULT, 1)
        self.assertEqual(tree.get_latest("b", "a")[0].translation[0], -10)
        tree.disconnect_frame("b", 3.0)
        self.fails("not linked", tree.get, "a", "b", 3.0)
        self.assertEqual(tree.get("a", "b", 2.5).translation[0], 10)
        self.fails("Cycling dependency", tree.set, "a", "c", 2.5, self.at(3))
        tree.set("a", "c", 3.0, self.at(3))
        self.assertEqual(tree.get("c", "a").translation[0], -3)
        tree.delete_frame("b")
        self.assertEqual(tree.get_frame_names(), ["a", "c"])
        self.assertEqual(tree.get_edge_names(), [("a", "c")])
        self.assertEqual(tree.create_frame(), 4)

    def test_the_oldest_is_forgotten(self):
        self.tree.create_edges("a", "b", 3)
        for time in range(5):
            self.tree.set("a", "b", time, self.at(time))
        self.assertEqual(self.tree.get("a", "b", 2.5).translation[0], 2.5)
        self.fails("not linked", self.tree.get, "a", "b", 1.5)

    def test_a_tree_of_one_process(self):
        app = Application()
        manager = PoseTreeManager(app, name="poses", number_frames=1)
        app.register_service(manager)
        self.assertIs(app.service(PoseTreeManager, "poses").tree, manager.tree)
        manager.tree.create_frame()
        self.fails("Out of Memory", manager.tree.create_frame)
        with mock.patch.dict(os.environ, {"PYTHON_FRAG_PROGRAM": "[]"}):
            self.assertIs(app.service(PoseTreeManager, "poses").tree, manager.tree)
            app.add_flow(Fragment(app, "one"), Fragment(app, "two"), {("x", "y")})
            with self.assertRaisesRegex(RuntimeError, "shared within one process"):
                manager.tree


if __name__ == "__main__":
    unittest.main()
