# SPDX-License-Identifier: Apache-2.0
"""holoscan.pose_tree: the poses of frames to each other over time, in one process."""
import bisect
import os
import sys
import threading

from . import _enums, _roles
from ._poses import SO2, SO3, Pose2, Pose3, between
from ._service import DistributedAppService
from .core import Resource

__all__ = ["Pose2", "Pose3", "PoseTree", "PoseTreeAccessMethod", "PoseTreeManager", "SO2", "SO3"]
_LATEST = sys.float_info.max


# What a pose is between two that were set.
PoseTreeAccessMethod = _enums.make("PoseTreeAccessMethod", """
    NEAREST INTERPOLATE_LINEARLY EXTRAPOLATE_LINEARLY INTERPOLATE_SLERP EXTRAPOLATE_SLERP PREVIOUS
    DEFAULT""")

_FAILURES = {"argument": "Invalid Argument", "memory": "Out of Memory", "frame": "Frame not found",
             "exists": "Edge already exists", "cycle": "Cycling dependency",
             "link": "Frames are not linked", "order": "Pose updated out of order"}


def _fail(failure):
    raise RuntimeError(_FAILURES[failure])


class _Frame:
    def __init__(self, name, most_edges):
        self.name, self.most_edges = name, most_edges
        self.edges = {}  # uid of the other frame -> _Edge


class _Edge:
    """From one frame to another; the poses are in the order of their times."""

    def __init__(self, lhs, rhs, length, method):
        self.lhs, self.rhs, self.length = lhs, rhs, length
        self.method = method
        self.times, self.poses, self.versions = [], [], []  # a pose of None: disconnected

    def add(self, time, pose, version):
        if self.times and time <= self.times[-1]:
            _fail("order")
        for values, value in ((self.times, time), (self.poses, pose), (self.versions, version)):
            values.append(value)
            del values[:-self.length]

    def at(self, time, method, version):
        """The pose at a time, as far as a version knows it; None: they are not linked then."""
        known = len(self.times)
        if version:
            known = bisect.bisect_right(self.versions, version)
        i = bisect.bisect_right(self.times, time, 0, known) - 1
        if i < 0 or self.poses[i] is None:
            return None
        method = self.method if method == PoseTreeAccessMethod.DEFAULT else method
        is_last = i + 1 == known or self.poses[i + 1] is None
        if method in (PoseTreeAccessMethod.EXTRAPOLATE_LINEARLY,
                      PoseTreeAccessMethod.EXTRAPOLATE_SLERP) and is_last and i > 0:
            i -= self.poses[i - 1] is not None  # on from the two before it
            is_last = i + 1 == known or self.poses[i + 1] is None
        if is_last or method == PoseTreeAccessMethod.PREVIOUS or time == self.times[i]:
            return self.poses[i]
        part = (time - self.times[i]) / (self.times[i + 1] - self.times[i])
        if method == PoseTreeAccessMethod.NEAREST:
            return self.poses[i + (part > 0.5)]
        return between(self.poses[i], self.poses[i + 1], part,
                       method in (PoseTreeAccessMethod.INTERPOLATE_SLERP,
                                  PoseTreeAccessMethod.EXTRAPOLATE_SLERP))


class PoseTree:
    """Frames, and the edges between them. Each change has a version. Any thread may use it.

    A frame is given by its uid or its name.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._version = 0
        self.deinit()

    def init(self, number_frames=1024, number_edges=16384, history_length=1048576,
             default_number_edges=16, default_history_length=1024, edges_chunk_size=4,
             history_chunk_size=64):
        if min(number_frames, number_edges, history_length, default_number_edges,
               default_history_length, edges_chunk_size, history_chunk_size) <= 0:
            _fail("argument")
        self.deinit()
        self._most_frames, self._most_edges = number_frames, number_edges
        self._room, self._default_length = history_length, default_history_length
        self._default_edges = default_number_edges
        self._version = 1

    def deinit(self):
        self._frames, self._names = {}, {}
        self._most_frames = self._most_edges = self._room = 0
        self._next, self._step = 1, 1

    def set_multithreading_info(self, start_id=1, increment=1):
        self._next, self._step = start_id, increment

    def get_pose_tree_version(self):
        return self._version

    def _change(self):
        self._version += 1
        return self._version

    # Frames.

    def _uid(self, frame):
        uid = self._names.get(frame) if isinstance(frame, str) else frame
        if uid not in self._frames:
            _fail("frame")
        return uid

    def _add_frame(self, uid, name, number_edges):
        name = name or "_frame_%d" % uid
        if uid in self._frames or name in self._names:
            _fail("exists")
        if len(self._frames) >= self._most_frames:
            _fail("memory")
        self._frames[uid] = _Frame(name, number_edges or self._default_edges)
        self._names[name] = uid
        return uid

    def create_frame(self, name="", number_edges=0):
        with self._lock:
            if name in self._names:
                _fail("exists")
            while self._next in self._frames:
                self._next += self._step
            return self._add_frame(self._next, name, number_edges)

    def create_frame_with_id(self, id, name=""):
        with self._lock:
            return self._add_frame(id, name, 0)

    def find_frame(self, name):
        with self._lock:
            return self._uid(name)

    def find_or_create_frame(self, name, number_edges=0):
        with self._lock:
            if name in self._names:
                return self._names[name]
            return self.create_frame(name, number_edges)

    def get_frame_name(self, uid):
        with self._lock:
            return self._frames[self._uid(uid)].name

    def get_frame_uids(self, maximum_number_frames=1024):
        with self._lock:
            return list(self._frames)[:maximum_number_frames]

    def get_frame_names(self, maximum_number_frames=1024):
        with self._lock:
            return list(self._names)[:maximum_number_frames]

    def delete_frame(self, frame):
        with self._lock:
            uid = self._uid(frame)
            for other in list(self._frames[uid].edges):
                self.delete_edge(uid, other)
            del self._names[self._frames.pop(uid).name]
            return self._change()

    def disconnect_frame(self, frame, time):
        with self._lock:
            edges = self._frames[self._uid(frame)].edges.values()
            if any(edge.times and edge.times[-1] >= time for edge in edges):
                _fail("order")
            version = self._change()
            for edge in edges:
                edge.add(time, None, version)
            return version

    # Edges.

    def _edges(self):
        return [edge for uid, frame in self._frames.items() for edge in frame.edges.values()
                if edge.lhs == uid]

    def _edge(self, lhs, rhs):
        edge = self._frames[self._uid(lhs)].edges.get(self._uid(rhs))
        return edge if edge is not None else _fail("link")

    def create_edges(self, lhs, rhs, number_edges=0, method=PoseTreeAccessMethod.DEFAULT):
        """number_edges: how many poses the edge remembers."""
        with self._lock:
            lhs, rhs = self._uid(lhs), self._uid(rhs)
            length = number_edges or self._default_length
            if lhs == rhs:
                _fail("cycle")
            if rhs in self._frames[lhs].edges:
                _fail("exists")
            ends = [self._frames[lhs], self._frames[rhs]]
            if length > self._room or len(self._edges()) >= self._most_edges or \
                    any(len(end.edges) >= end.most_edges for end in ends):
                _fail("memory")
            self._room -= length
            if method == PoseTreeAccessMethod.DEFAULT:
                method = PoseTreeAccessMethod.INTERPOLATE_LINEARLY
            edge = _Edge(lhs, rhs, length, method)
            ends[0].edges[rhs] = ends[1].edges[lhs] = edge
            return self._change()

    def delete_edge(self, lhs, rhs):
        with self._lock:
            edge = self._edge(lhs, rhs)
            del self._frames[edge.lhs].edges[edge.rhs], self._frames[edge.rhs].edges[edge.lhs]
            self._room += edge.length
            return self._change()

    def disconnect_edge(self, lhs, rhs, time):
        with self._lock:
            self._edge(lhs, rhs).add(time, None, self._version + 1)
            return self._change()

    def get_edge_uids(self, maximum_number_edges=1024):
        with self._lock:
            return [(edge.lhs, edge.rhs) for edge in self._edges()][:maximum_number_edges]

    def get_edge_names(self, maximum_number_edges=1024):
        return [(self._frames[lhs].name, self._frames[rhs].name)
                for lhs, rhs in self.get_edge_uids(maximum_number_edges)]

    # Poses.

    def _path(self, lhs, rhs, time, method, version, without=None):
        """The pose of one frame in another, along the edges that there are at the time."""
        seen, reached = {lhs}, [(lhs, Pose3())]
        while reached:
            uid, pose = reached.pop()
            if uid == rhs:
                return pose
            for other, edge in self._frames[uid].edges.items():
                step = edge.at(time, method, version) \
                    if other not in seen and edge is not without else None
                if step is not None:
                    seen.add(other)
                    reached.append((other, pose @ (step if edge.lhs == uid else step.inverse())))
        return None

    def set(self, lhs, rhs, time, pose):
        """Sets the pose of the frame rhs in the frame lhs from a time on."""
        with self._lock:
            lhs, rhs = self._uid(lhs), self._uid(rhs)
            edge = self._frames[lhs].edges.get(rhs)
            if self._path(lhs, rhs, time, PoseTreeAccessMethod.PREVIOUS, 0, edge) is not None:
                _fail("cycle")
            if edge is None:
                self.create_edges(lhs, rhs)
                edge = self._frames[lhs].edges[rhs]
            pose = Pose3.from_pose2_xy(pose) if isinstance(pose, Pose2) else pose
            edge.add(time, pose if edge.lhs == lhs else pose.inverse(), self._version + 1)
            return self._change()

    def get(self, lhs, rhs, time=_LATEST, method=PoseTreeAccessMethod.DEFAULT, version=0):
        with self._lock:
            pose = self._path(self._uid(lhs), self._uid(rhs), time, method, version)
            return pose if pose is not None else _fail("link")

    def get_pose2_xy(self, lhs, rhs, time=_LATEST, method=PoseTreeAccessMethod.DEFAULT, version=0):
        return self.get(lhs, rhs, time, method, version).to_pose2_xy()

    def get_latest(self, lhs, rhs):
        """The last pose of an edge, and its time."""
        with self._lock:
            edge = self._edge(lhs, rhs)
            if not edge.times:
                _fail("link")
            pose = edge.poses[-1] or Pose3()
            return pose if edge.lhs == self._uid(lhs) else pose.inverse(), edge.times[-1]


class PoseTreeManager(Resource, DistributedAppService):
    """A pose tree that the operators of one process share."""

    def __init__(self, fragment, *args, port=13337, number_frames=1024, number_edges=16384,
                 history_length=1048576, default_number_edges=16, default_history_length=1024,
                 edges_chunk_size=4, history_chunk_size=64, request_timeout_ms=5000,
                 request_poll_sleep_us=10, worker_progress_sleep_us=100,
                 server_shutdown_timeout_ms=1000, server_shutdown_poll_sleep_ms=10, **kwargs):
        Resource.__init__(self, fragment, *args, **kwargs)
        DistributedAppService.__init__(self)
        self.port = port
        self._tree = PoseTree()
        self._tree.init(number_frames, number_edges, history_length, default_number_edges,
                        default_history_length, edges_chunk_size, history_chunk_size)

    def resource(self, new_resource=None):
        if new_resource:
            raise ValueError("a PoseTreeManager is its own resource")
        return self

    @property
    def tree(self):
        if _roles.PROGRAM in os.environ and len(self.fragment._fragments) > 1:
            raise RuntimeError("a pose tree is shared within one process: run the program without "
                               "--driver and --worker, or send poses as messages")
        return self._tree


def __getattr__(name):
    if name.startswith("PoseTreeUCX"):
        raise AttributeError("%s is not supported by frag: a pose tree is shared within one process; "
                             "send poses to other processes as messages" % name)
    raise AttributeError("module holoscan.pose_tree has no attribute %r" % name)
