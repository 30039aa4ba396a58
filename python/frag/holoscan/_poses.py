# SPDX-License-Identifier: Apache-2.0
"""Rotations and poses in two and three dimensions, as holoscan.pose_tree has them."""
import math


class _Numpy:
    """numpy, imported when it is needed first: the package can do without it."""

    def __getattr__(self, name):
        import numpy
        return getattr(numpy, name)


np = _Numpy()


def _row(numbers):
    texts = ["%g" % number for number in numbers]
    width = max(map(len, texts))
    return " ".join(text.rjust(width) for text in texts)


def _matrix(matrix):
    texts = [["%.4g" % number for number in row] for row in matrix]
    width = max(len(text) for row in texts for text in row)
    return "[%s]" % ";\n ".join(", ".join(text.rjust(width) for text in row) for row in texts)


def _vector(values, size):
    vector = np.array(values, dtype=float).reshape(-1)
    if vector.shape != (size,):
        raise TypeError("an array of %d numbers is wanted, not one of %d" % (size, vector.size))
    return vector


class SO2:
    """A rotation in the plane."""

    def __init__(self, cos=1.0, sin=0.0):
        self._cos, self._sin = float(cos), float(sin)

    @staticmethod
    def identity():
        return SO2()

    @staticmethod
    def from_angle(angle):
        return SO2(math.cos(angle), math.sin(angle))

    @staticmethod
    def from_direction(direction):
        x, y = _vector(direction, 2)
        length = math.hypot(x, y)
        return SO2(x / length, y / length)

    @staticmethod
    def from_normalized(direction):
        return SO2(*_vector(direction, 2))

    def angle(self):
        return math.atan2(self._sin, self._cos)

    def cos(self):
        return self._cos

    def sin(self):
        return self._sin

    def inverse(self):
        return SO2(self._cos, -self._sin)

    def matrix(self):
        return np.array([[self._cos, -self._sin], [self._sin, self._cos]])

    def __matmul__(self, other):
        return SO2(self._cos * other._cos - self._sin * other._sin,
                   self._sin * other._cos + self._cos * other._sin)

    def __repr__(self):
        return "SO2(angle=%g)" % self.angle()


class SO3:
    """A rotation in space: a quaternion (x, y, z, w) of length 1."""

    def __init__(self, quaternion=(0.0, 0.0, 0.0, 1.0)):
        self._q = _vector(quaternion, 4)

    @staticmethod
    def identity():
        return SO3()

    @staticmethod
    def from_scaled_axis(axis):
        axis = _vector(axis, 3)
        angle = float(np.linalg.norm(axis))
        return SO3.from_axis_angle(axis, angle) if angle > 0 else SO3()

    @staticmethod
    def from_axis_angle(axis, angle):
        axis = _vector(axis, 3)
        return SO3([*(axis / np.linalg.norm(axis) * math.sin(angle / 2)), math.cos(angle / 2)])

    @staticmethod
    def from_quaternion(quaternion):
        quaternion = _vector(quaternion, 4)
        return SO3(quaternion / np.linalg.norm(quaternion))

    @staticmethod
    def from_normalized_quaternion(quaternion):
        return SO3(quaternion)

    @staticmethod
    def from_so2_xy(rotation):
        return SO3.from_axis_angle((0, 0, 1), rotation.angle())

    @staticmethod
    def from_matrix(matrix):
        m = np.array(matrix, dtype=float).reshape(3, 3)
        # Of the four numbers the one whose square is the largest is found first.
        squares = [1 + m[0, 0] - m[1, 1] - m[2, 2], 1 - m[0, 0] + m[1, 1] - m[2, 2],
                   1 - m[0, 0] - m[1, 1] + m[2, 2], 1 + np.trace(m)]
        i = int(np.argmax(squares))
        q = np.empty(4)
        if i == 3:
            q[:] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], squares[3]
        else:
            j, k = (i + 1) % 3, (i + 2) % 3
            q[[i, j, k, 3]] = squares[i], m[j, i] + m[i, j], m[k, i] + m[i, k], m[k, j] - m[j, k]
        return SO3(q / (2 * math.sqrt(squares[i])))

    @property
    def quaternion(self):
        return self._q.copy()

    def axis(self):
        length = np.linalg.norm(self._q[:3])
        return self._q[:3] / length if length > 0 else np.zeros(3)

    def angle(self):
        return 2 * math.atan2(np.linalg.norm(self._q[:3]), self._q[3])

    def matrix(self):
        x, y, z, w = self._q
        return np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])

    def euler_angles_rpy(self):
        m = self.matrix()
        return np.array([math.atan2(m[2, 1], m[2, 2]), math.asin(max(-1.0, min(1.0, -m[2, 0]))),
                         math.atan2(m[1, 0], m[0, 0])])

    def inverse(self):
        return SO3(self._q * (-1, -1, -1, 1))

    def _power(self, exponent):
        """The part of the rotation from none to it; beyond 1 further on."""
        return SO3.from_scaled_axis(self.axis() * self.angle() * exponent)

    def __matmul__(self, other):
        (a, s), (b, t) = (self._q[:3], self._q[3]), (other._q[:3], other._q[3])
        return SO3([*(s * b + t * a + np.cross(a, b)), s * t - a @ b])

    def __mul__(self, vector):
        return self.matrix() @ _vector(vector, 3)

    def __repr__(self):
        return "SO3(quaternion=%s)" % _row(self._q)


class Pose2:
    """A rotation and then a translation in the plane."""

    def __init__(self, rotation=None, translation=(0.0, 0.0)):
        self.rotation = rotation or SO2()
        self.translation = _vector(translation, 2)

    @staticmethod
    def identity():
        return Pose2()

    @staticmethod
    def from_translation(translation):
        return Pose2(None, translation)

    @staticmethod
    def from_rotation(angle):
        return Pose2(SO2.from_angle(angle))

    @staticmethod
    def from_xy_a(x, y, angle):
        return Pose2(SO2.from_angle(angle), (x, y))

    @staticmethod
    def from_matrix(matrix):
        matrix = np.array(matrix, dtype=float).reshape(3, 3)
        return Pose2(SO2.from_direction(matrix[:2, 0]), matrix[:2, 2])

    @property
    def angle(self):
        return self.rotation.angle()

    @angle.setter
    def angle(self, angle):
        self.rotation = SO2.from_angle(angle)

    def inverse(self):
        back = self.rotation.inverse()
        return Pose2(back, -(back.matrix() @ self.translation))

    def matrix(self):
        matrix = np.eye(3)
        matrix[:2, :2], matrix[:2, 2] = self.rotation.matrix(), self.translation
        return matrix

    def __matmul__(self, other):
        return Pose2(self.rotation @ other.rotation, self * other.translation)

    def __mul__(self, point):
        return self.rotation.matrix() @ _vector(point, 2) + self.translation

    def __repr__(self):
        return "Pose2d(translation=%s, rotation=%g)" % (_row(self.translation), self.angle)


class Pose3:
    """A rotation and then a translation in space."""

    def __init__(self, rotation=None, translation=(0.0, 0.0, 0.0)):
        self.rotation = rotation or SO3()
        self.translation = _vector(translation, 3)

    @staticmethod
    def identity():
        return Pose3()

    @staticmethod
    def from_translation(translation):
        return Pose3(None, translation)

    @staticmethod
    def from_rotation(axis, angle):
        return Pose3(SO3.from_axis_angle(axis, angle))

    @staticmethod
    def from_matrix(matrix):
        matrix = np.array(matrix, dtype=float).reshape(4, 4)
        return Pose3(SO3.from_matrix(matrix[:3, :3]), matrix[:3, 3])

    @staticmethod
    def from_pose2_xy(pose):
        return Pose3(SO3.from_so2_xy(pose.rotation), (*pose.translation, 0.0))

    def to_pose2_xy(self):
        matrix = self.rotation.matrix()
        return Pose2(SO2.from_direction(matrix[:2, 0]), self.translation[:2])

    def inverse(self):
        back = self.rotation.inverse()
        return Pose3(back, -(back * self.translation))

    def __matmul__(self, other):
        return Pose3(self.rotation @ other.rotation, self * other.translation)

    def __mul__(self, point):
        return self.rotation * point + self.translation

    def __repr__(self):
        return "Pose3d(translation=%s, rotation=%s)" % (
            _row(self.translation), _matrix(self.rotation.matrix()))


def between(first, second, part, on_screw=False):
    """The pose at a part of the way; beyond 1 further on. on_screw: along one motion of both."""
    turn = first.rotation.inverse() @ second.rotation
    if turn._q[3] < 0:
        turn = SO3(-turn._q)
    if not on_screw:
        return Pose3(first.rotation @ turn._power(part),
                     (1 - part) * first.translation + part * second.translation)
    # The motion of both is a turn around an axis and a way along it and around it.
    way = first.rotation.inverse() * (second.translation - first.translation)
    axis, angle = turn.axis(), turn.angle()
    if angle < 1e-12:
        moved = part * way
    else:
        speed = np.linalg.solve(_moved(axis, angle), way)
        moved = _moved(axis, angle, part) @ speed
    return Pose3(first.rotation @ turn._power(part), first.translation + first.rotation * moved)


def _moved(axis, angle, part=1.0):
    """What a constant speed in a frame that turns comes to."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned = part * angle
    return (part * np.eye(3) + (1 - math.cos(turned)) / angle * cross +
            (part - math.sin(turned) / angle) * cross @ cross)
