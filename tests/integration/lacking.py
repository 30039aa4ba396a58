# SPDX-License-Identifier: Apache-2.0
"""Runs a program as on a kernel that lacks something: lacking.py landlock,seccomp COMMAND...
A filter of system calls, which all children inherit, answers what is lacking with ENOSYS, or with
the error that is named: memfd_create=EPERM."""
import ctypes
import errno
import os
import platform
import struct
import sys

# of x86_64 and of aarch64
OF_TWO = {"seccomp": (317, 277), "epoll_create1": (291, 20), "eventfd2": (290, 19), "pipe2": (293, 59),
          "socketpair": (53, 199), "signalfd4": (289, 74), "timerfd_create": (283, 85), "memfd_create": (319, 279),
          "pidfd_open": (434, 434)}
MACHINE = ("x86_64", "aarch64").index(platform.machine())
NUMBERS = {"landlock": (444, 445, 446), "clone": ((56, 220)[MACHINE], 435),
           **{name: (two[MACHINE],) for name, two in OF_TWO.items()}}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def code():
    words, _, error = sys.argv[1].partition("=")
    numbers = [n for word in words.split(",") for n in NUMBERS[word]]
    lines = [(LOAD, 0, 0, 0)]
    for i, n in enumerate(numbers):
        lines.append((JUMP_EQUAL, len(numbers) - i, 0, n))
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | getattr(errno, error or "ENOSYS"))]
    return len(lines), b"".join(struct.pack("HBBI", *line) for line in lines)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


length, text = code()
libc = ctypes.CDLL(None, use_errno=True)
for args in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
             (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(length, text)), 0, 0)):
    if libc.prctl(*args) != 0:
        sys.exit("lacking.py: %s" % os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
