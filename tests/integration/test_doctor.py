# SPDX-License-Identifier: Apache-2.0
"""fragctl doctor: a node that is planted as files, healthy, and with one thing wrong at a time."""
import contextlib
import json
import os
import random
import re
import socket
import unittest

import cluster
from test_certificates import CertificateTest
from test_service import ServiceTest

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max file size             %(file)s            unlimited            bytes
Max address space         %(space)s            unlimited            bytes
Max locked memory         %(lock)s            unlimited            bytes
Max realtime priority     %(priority)s                   90
"""
FREE = {"file": "unlimited", "space": "unlimited", "lock": "unlimited", "priority": "90"}
CARD = {
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/dev/infiniband/uverbs0": "",
    "/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0": "",
}
GPU = {
    "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
    "/sys/module/nvidia/version": "580.159.03\n",
    "/dev/nvidiactl": "",
    "/asked/gpus": "2",
}
PTP = {"/sys/class/net/eth0/device/ptp/ptp1/clock_name": "mlx5"}
LISTENS = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:E1B1 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0
   1: 0100007F:2710 0100007F:E1B2 01 00000000:00000000 00:00000000 00000000     0
"""
HEALTHY = {
    "/proc/self/limits": LIMITS % FREE,
    "/proc/self/status": "CapEff:\t0000000000000000\n",
    "/proc/net/tcp": LISTENS.replace("E1B1", "0016"),
    "/proc/sys/kernel/random/boot_id": "a\n",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "/proc/sys/kernel/seccomp/actions_avail": "kill_process kill_thread trap errno log allow\n",
    "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always within_size [advise] never deny force\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "/sys/class/net/eth0/mtu": "9000\n",
    "/sys/class/net/eth0/operstate": "up\n",
    "/sys/class/net/eth0/speed": "10000\n",
    "/asked/clock_error_us": "1200",
    "/asked/landlock": "3",
    "/asked/refused_calls": "0",
    "/asked/seals": "1",
    "/asked/shm_mib": "7900",
    "/asked/interface": "eth0",
    "/asked/sync_us": "1800",
    "/asked/free_mib": "20000",
    "/state/.keep": "",
}
WORKER = {"/proc/12/comm": "workerd\n", "/proc/12/limits": LIMITS % FREE, "/proc/12/status": "CapEff:\t0\n",
          "/proc/12/cgroup": "0::/system.slice/frag-worker.service/worker\n",
          "/sys/fs/cgroup/system.slice/frag-worker.service/cgroup.controllers": "cpu memory\n"}
CONTAINER = {"/run/.containerenv": ""}
REMOVED = None


def limited(**changes):
    return LIMITS % dict(FREE, **changes)


# name of the check, files that are planted, what the line says, what mends it
PLANTED = (
    ("clock", {"/asked/clock_error_us": "-1"}, "no program keeps", "install chrony$"),
    ("clock", {"/asked/clock_error_us": "-1", **CONTAINER}, "no program keeps", "on the machine"),
    ("ptp", {**PTP, "/proc/7/comm": "ptp4l\n"}, "ptp4l sets the clock of eth0, and nothing", "phc2sys@eth0"),
    ("ptp", {"/proc/7/comm": "ptp4l\n"}, "no network card has a clock", "ethtool"),
    ("governor", {"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n"},
     "^powersave on 1 of 2 cores", "cpupower"),
    ("huge_pages", {"/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always advise [never] deny\n"},
     "memory: never$", "^echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled$"),
    ("huge_pages", {"/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always advise never [deny]\n"},
     "memory: deny$", "^echo advise"),
    ("shared_memory", {"/proc/self/limits": limited(file="1000")}, "Max file size", "ulimit -f"),
    ("shared_memory", {"/proc/self/limits": limited(space="1000")}, "Max address space", "ulimit -v"),
    ("shared_memory", {"/asked/seals": "-1"}, "sealed", "Linux 5.1"),
    ("shared_memory", {"/asked/seals": "-1", **CONTAINER}, "sealed", "--security-opt"),
    ("shared_memory", {"/proc/sys/kernel/random/boot_id": REMOVED}, "which machine", "mount -t proc"),
    ("shared_memory", {**GPU, "/asked/shm_mib": "64", **CONTAINER}, "64 MiB", "--shm-size"),
    ("memlock", {"/proc/self/limits": limited(lock="65536")}, "from here may lock 64 KiB", "ulimit -l"),
    ("memlock", {"/proc/self/limits": limited(lock="65536"), **CONTAINER}, "64 KiB", "--ulimit memlock=-1"),
    ("rtprio", {"/proc/self/limits": limited(priority="0")}, "up to 0", "frag-worker.service"),
    ("rtprio", {"/proc/self/limits": limited(priority="89")}, "up to 89", "ulimit -r 90"),
    ("rtprio", {"/proc/self/limits": limited(priority="0"), **CONTAINER}, "up to 0", "SYS_NICE"),
    ("rtprio", {**WORKER, "/proc/12/limits": limited(priority="5")}, r"workerd \(process 12\) .* up to 5", "ulimit"),
    ("rtprio", {"/proc/sys/kernel/sched_rt_runtime_us": "0\n"}, "is 0", "=950000"),
    ("control_groups", {"/sys/fs/cgroup/cgroup.controllers": REMOVED}, "no cgroup v2", "unified"),
    ("control_groups", {"/sys/fs/cgroup/cgroup.controllers": "cpuset io memory pids\n"}, "not delegated", "Delegate"),
    ("control_groups", {"/sys/fs/cgroup/cgroup.controllers": "cpu io pids\n", **CONTAINER}, "not delegated", "podman"),
    ("control_groups", {**WORKER, "/sys/fs/cgroup/system.slice/frag-worker.service/cgroup.controllers": "memory\n"},
     "frag-worker.service", "Delegate"),
    ("landlock", {"/asked/landlock": "-38"}, "has none", "5.13"),
    ("landlock", {"/asked/landlock": "-1", **CONTAINER}, "has none", "seccomp profile"),
    ("seccomp", {"/proc/sys/kernel/seccomp/actions_avail": REMOVED}, "no filters", "CONFIG_SECCOMP_FILTER"),
    ("system_calls", {"/asked/refused_calls": "1"}, "refuses epoll_create1$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "2"}, "refuses eventfd2$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "4"}, "refuses pipe2$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "8"}, "refuses socketpair$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "16"}, "refuses signalfd4$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "32"}, "refuses timerfd_create$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "64"}, "refuses memfd_create$", "Linux 5.3"),
    ("system_calls", {"/asked/refused_calls": "192", **CONTAINER}, "refuses memfd_create, pidfd_open$",
     "seccomp profile"),
    ("system_calls", {"/asked/refused_calls": "256"}, "refuses to open /dev/null$", "^give the container a /dev$"),
    ("system_calls", {"/asked/refused_calls": "257"}, "refuses epoll_create1, to open /dev/null$",
     "^give the container a /dev; install Linux 5.3"),
    ("gpu", {**GPU, "/sys/module/nvidia/version": REMOVED}, "without NVIDIA's driver", "nvidia-driver"),
    ("gpu", {**GPU, "/sys/module/nvidia/version": "515.1\n"}, "515.1 is older than CUDA 12.0", "525 or newer"),
    ("gpu", {**GPU, "/dev/nvidiactl": REMOVED}, "nvidiactl is not there", "nvidia-modprobe"),
    ("gpu", {**GPU, "/dev/nvidiactl": REMOVED, **CONTAINER}, "nvidiactl is not there", "--device nvidia.com/gpu"),
    ("gpu", {**GPU, "/asked/gpus": "-1"}, r"driver 580.159.03 \(CUDA 13.0\) gives no GPU", "nvidia-smi"),
    ("rdma", {**CARD, "/sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n"}, "^mlx5_0 is DOWN$", "rdma link"),
    ("rdma", {**CARD, "/dev/infiniband/uverbs0": REMOVED}, "no device of mlx5_0", "rdma-core"),
    ("rdma", {**CARD, "/dev/infiniband/uverbs0": REMOVED, **CONTAINER}, "no device", "--device /dev/infiniband"),
    ("rdma", {**CARD, "/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0": REMOVED}, "no module", "libucx0"),
    ("interface", {"/asked/interface": REMOVED}, "no way to 127.0.0.1", "ip route get"),
    ("interface", {"/sys/class/net/eth0/operstate": "down\n"}, "eth0, towards the driver, is down", "link set eth0 up"),
    ("interface", {"/sys/class/net/eth0/speed": "100\n"}, "100 Mbit/s", "ethtool eth0"),
    ("interface", {"/sys/class/net/eth0/mtu": "1500\n"}, "10000 Mbit/s has an MTU of 1500", "mtu 9000"),
    ("interface", {**CONTAINER, "/sys/class/net/eth0/device": "", "/sys/class/net/eth0/mtu": "1500\n"},
     "10000 Mbit/s has an MTU of 1500", "mtu 9000"),
    ("driver_port", {"/proc/net/tcp": LISTENS}, "another program listens on port 57777", "ss -ltnp"),
    ("driver_port", {"/proc/net/tcp6": LISTENS.replace("0100007F", "0" * 32)}, "port 57777", "ss -ltnp"),
    ("data_ports", {"/proc/sys/net/ipv4/ip_local_port_range": "32767\t60999\n"}, "from 32767 on", "sysctl"),
    ("state_folder", {"/state/.keep": REMOVED}, "/state is not there", "install -d"),
    ("state_folder", {"/asked/sync_us": "51000"}, "51.0 ms", "faster disk"),
    ("state_folder", {"/asked/free_mib": "255"}, "255 MiB left", "make room"),
    ("development", {"/usr/include/frag/frag.h": ""}, "no C compiler", "gcc"),
    ("inference", {"/asked/FRAG_OPENVINO": "/opt/ov\n"}, "FRAG_OPENVINO names /opt/ov", "unset"),
    ("inference", {"/asked/FRAG_ONNXRUNTIME": "/opt/ort\n"}, "FRAG_ONNXRUNTIME names /opt/ort", "libonnxruntime.so.1, or unset"),
)

# nodes that differ and are healthy, and what a line says
WELL = (
    ("ptp", {}, "no network card has a clock"),
    ("ptp", PTP, "eth0 has a clock for PTP, which is not used"),
    ("ptp", {**PTP, "/proc/7/comm": "ptp4l\n", "/proc/8/comm": "phc2sys\n"}, "^ptp4l sets the clock of eth0$"),
    ("governor", {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": REMOVED,
                  "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": REMOVED}, "does not choose"),
    ("huge_pages", {"/sys/kernel/mm/transparent_hugepage/shmem_enabled": REMOVED}, "has none"),
    ("shared_memory", {"/asked/shm_mib": "64"}, "64 MiB"),
    ("shared_memory", {"/asked/shm_mib": "-1"}, "there is no /dev/shm"),
    ("shared_memory", {**GPU, "/asked/shm_mib": "65"}, "65 MiB"),
    ("memlock", {"/proc/self/limits": limited(lock="1048576")}, "may lock 1 MiB"),
    ("rtprio", {"/proc/self/limits": limited(priority="0"), "/proc/self/status": "CapEff:\t0000000000800000\n"},
     "from here may set"),
    ("rtprio", {**WORKER, "/proc/self/limits": limited(priority="0")}, r"workerd \(process 12\) may set"),
    ("control_groups", WORKER, "can be limited"),
    ("gpu", GPU, r"^2, with driver 580.159.03 \(CUDA 13.0\); no MPS runs, so fragments get no gpuThreads$"),
    ("gpu", {**GPU, "/asked/mps": "1"}, r"^2, with driver 580.159.03 \(CUDA 13.0\); MPS runs$"),
    ("gpu", {**GPU, "/sys/module/nvidia/version": "525.60.13\n"}, r"CUDA 12.0"),
    ("rdma", {}, "no card"),
    ("rdma", CARD, "mlx5_0 could be used; frag uses TCP"),
    ("interface", {"/sys/class/net/eth0/speed": "1000\n", "/sys/class/net/eth0/mtu": "1500\n"},
     "^eth0, MTU 1500, 1000 Mbit/s$"),
    ("interface", {"/asked/interface": "lo"}, r"^lo: .* another\)$"),
    ("interface", {**CONTAINER, "/asked/interface": "lo"}, r"^lo: .*; only the container's network: podman run --network host"),
    ("interface", {**CONTAINER, "/sys/class/net/eth0/mtu": "1500\n"}, "^eth0, MTU 1500, 10000 Mbit/s; only the container's"),
    ("interface", {**CONTAINER, "/sys/class/net/eth0/device": ""}, "^eth0, MTU 9000, 10000 Mbit/s$"),
    ("driver_port", {"/proc/net/tcp": LISTENS, "/proc/9/comm": "driverd\n"}, "a driverd listens$"),
    ("driver_port", {"/proc/9/comm": "driverd\n"}, "57777 is free"),
    ("state_folder", {}, "/state, 20000 MiB free, .* after 1.8 ms"),
    ("development", {"/usr/include/frag/frag.h": "", "/usr/bin/cc": ""}, "can be compiled"),
    ("inference", {"/usr/lib/x86_64-linux-gnu/libopenvino_c.so.2026": ""}, "^OpenVINO: .*libopenvino_c.so.2026$"),
    ("inference", {"/usr/lib/x86_64-linux-gnu/libopenvino_c.so.2026": "", "/usr/lib/frag/onnxruntime/libonnxruntime.so.1": ""},
     "^OpenVINO: .*so.2026; ONNX Runtime: .*/frag/onnxruntime/libonnxruntime.so.1$"),
)


class Planted(cluster.ClusterTest):
    def fragctl(self, *args):
        return self.start("fragctl", *args)

    def node(self, changes):
        """A folder with the files of a healthy node, but for the changes."""
        self.nodes = getattr(self, "nodes", 0) + 1
        root = self.path("node%d" % self.nodes)
        for path, text in {**HEALTHY, **changes}.items():
            if text is REMOVED:
                continue
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            with open(root + path, "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(root + path, 0o755)
        return root

    def doctor(self, changes, *flags):
        """The exit code, and {name of a check: its object}."""
        p = self.fragctl("doctor", "--root", self.node(changes), "--state-dir", "/state", "-o", "json", *flags)
        code = p.wait()
        self.assertEqual(p.stderr, "")
        told = json.loads(p.stdout)
        self.assertEqual(told["healthy"], code == 0)
        return code, {check["check"]: check for check in told["checks"]}

    def test_a_healthy_node_gets_nothing_but_ok(self):
        code, checks = self.doctor({})
        self.assertEqual([check for check in checks.values() if not check["ok"] or check["cost"] or check["mend"]], [])
        self.assertEqual(code, 0)
        p = self.fragctl("doctor", "--root", self.node({}), "--state-dir", "/state")
        self.assertEqual(p.wait(), 0)
        lines = p.stdout.splitlines()
        self.assertEqual([line.split()[:2] for line in lines[:-1]],
                         [[name, "ok"] for name in checks])
        self.assertEqual(lines[-1], "all %d are ok" % len(checks))

    def test_each_fault_is_found_and_nothing_else(self):
        for name, changes, found, mend in PLANTED:
            with self.subTest(name, found=found):
                code, checks = self.doctor(changes)
                self.assertEqual(code, 1)
                self.assertEqual([n for n, check in checks.items() if not check["ok"]], [name])
                self.assertRegex(checks[name]["found"], found)
                self.assertRegex(checks[name]["mend"], mend)
                self.assertTrue(checks[name]["cost"])

    def test_what_differs_and_is_well(self):
        for name, changes, found in WELL:
            with self.subTest(name, found=found):
                code, checks = self.doctor(changes)
                self.assertEqual([n for n, check in checks.items() if not check["ok"]], [])
                self.assertRegex(checks[name]["found"], found)
                self.assertEqual(code, 0)

    def test_each_check_has_a_fault_that_is_planted(self):
        _, checks = self.doctor({})
        self.assertEqual(set(checks) - {name for name, *_ in PLANTED}, {"certificate"})

    def test_a_card_needs_locked_memory(self):
        code, checks = self.doctor({**CARD, "/proc/self/limits": limited(lock="8388608")})
        self.assertEqual([n for n, check in checks.items() if not check["ok"]], ["memlock", "rdma"])
        self.assertEqual((code, checks["rdma"]["mend"]), (1, "see memlock"))
        self.assertIn("may lock 8192 KiB", checks["memlock"]["found"])

    def test_another_port(self):
        _, checks = self.doctor({"/proc/net/tcp": LISTENS}, "--address", ":57778")
        self.assertEqual(checks["driver_port"]["found"], "57778 is free")
        code, checks = self.doctor({}, "--address", ":x")
        self.assertEqual((code, checks["interface"]["ok"]), (1, False))

    def test_lines_for_people(self):
        changes = {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"}
        p = self.fragctl("doctor", "--root", self.node(changes), "--state-dir", "/state")
        self.assertEqual(p.wait(), 1)
        lines = p.stdout.splitlines()
        at = [line.split()[0] for line in lines].index("governor")
        self.assertEqual(lines[at], "governor        wrong  powersave on 1 of 2 cores")
        self.assertRegex(lines[at + 1], "^ {16}costs  a core ")
        self.assertRegex(lines[at + 2], "^ {16}mend   cpupower frequency-set -g performance$")
        self.assertRegex(lines[-1], r"^1 of \d+ are wrong$")


class Certificates(CertificateTest):
    def doctor(self, name):
        p = self.start("fragctl", "doctor", "--cert", self.path(name), "-o", "json")
        p.wait()
        return [check for check in json.loads(p.stdout)["checks"] if check["check"] == "certificate"][0]

    def test_the_end_of_a_certificate(self):
        self.sign("short", "/OU=worker/CN=short", days="29")
        self.sign("past", "/OU=worker/CN=past", days="-1")
        for name, is_ok, found in (("node7.pem", True, r"ends in 36[45] days$"), ("short.pem", False, r"ends in 2[89] days$"),
                                   ("past.pem", False, r"has ended [12] days ago$"), ("none.pem", False, "none.pem cannot be read: ")):
            with self.subTest(name):
                check = self.doctor(name)
                self.assertEqual(check["ok"], is_ok)
                self.assertRegex(check["found"], found)
                self.assertEqual("SECURITY" in (check["mend"] or ""), not is_ok)


class Here(cluster.ClusterTest):
    def test_this_machine(self):
        p = self.start("fragctl", "doctor", "--state-dir", self.path(""), "-o", "json")
        code = p.wait()
        told = json.loads(p.stdout)
        self.assertEqual(code, 0 if told["healthy"] else 1)
        self.assertEqual(p.stderr, "")
        for check in told["checks"]:
            self.assertEqual(bool(check["cost"] and check["mend"]), not check["ok"], check)
        state = [check for check in told["checks"] if check["check"] == "state_folder"][0]
        self.assertRegex(state["found"], "MiB (free|left)|on the disk")
        development = [check for check in told["checks"] if check["check"] == "development"][0]
        self.assertRegex(development["found"], "can be compiled here|no C compiler")  # the headers are in the tree


class Workers(ServiceTest):
    def doctor(self):
        p = self.start("fragctl", "doctor", "--workers", "-o", "json")
        code = p.wait()
        told = self.document(p.stdout)
        self.assertEqual(code, 0 if told["healthy"] else 1, p.stderr)
        every = [c for w in told["nodes"] for c in w["checks"]] + told["connections"]
        self.assertEqual(told["healthy"], all(c["ok"] for c in every), every)
        return {w["worker"]: {c["check"]: c for c in w["checks"]} for w in told["nodes"]}, told["connections"]

    def test_each_node_and_each_connection(self):
        self.serve(workers=("a", "b", "c"))
        here = self.start("fragctl", "doctor", "-o", "json")
        here.wait()
        nodes, connections = self.doctor()
        self.assertEqual(set(nodes), {"a", "b", "c"})
        for checks in nodes.values():
            self.assertEqual(list(checks), [c["check"] for c in json.loads(here.stdout)["checks"]])
            for check in checks.values():
                self.assertEqual(bool(check["cost"] and check["mend"]), not check["ok"], check)
        self.assertEqual({frozenset(c["found"].split(":")[0].split(" - ")) for c in connections},
                         {frozenset("ab"), frozenset("ac"), frozenset("bc")})
        for c in connections:
            self.assertTrue(c["ok"], c)
            self.assertRegex(c["found"], r"^. - .: [0-9.]+ [um]?s there and back, \d+ MB/s each way, shm$")
        self.assertEqual(self.json("list")["applications"], [])

    def test_lines_for_people(self):
        self.serve(workers=("a", "b"))
        p = self.start("fragctl", "doctor", "--workers")
        code = p.wait()
        lines = p.stdout.splitlines()
        workers = [line for line in lines if line.startswith("worker ")]
        for name, line in zip("ab", sorted(workers), strict=True):
            self.assertRegex(line, r"^worker %s, 127.0.0.1:\d+: \d+ ok, \d+ wrong$" % name)
        self.assertRegex(lines[-2], "^connection      ok     [ab] - [ab]: .* there and back")
        ok, wrong = (sum(int(n) for n in re.findall(r"(\d+) %s\b" % what, "\n".join(workers))) for what in ("ok", "wrong"))
        self.assertEqual(lines[-1], "%d of %d are wrong" % (wrong, ok + wrong + 1) if wrong else "all %d are ok" % (ok + 1))
        self.assertEqual(code, 1 if wrong else 0)

    def take_data_port(self):
        for port in random.sample(range(10000, 32767), 20):
            with contextlib.suppress(OSError):
                taken = socket.create_server(("127.0.0.1", port))
                self.addCleanup(taken.close)
                return taken
        return self.skipTest("no port of the data plane is free")

    def test_a_port_that_is_taken_and_a_limit(self):
        """What is planted is found on its worker, and at its connection, alone."""
        taken = self.take_data_port()
        self.serve(workers=("a", "b"))
        self.worker("--name", "c", "--host-limit", "fsize=%d" % (1 << 60),
                    "--worker-address", "127.0.0.1:%d" % taken.getsockname()[1],
                    prefix=("sh", "-c", 'ulimit -l 64; exec "$@"', "sh"))
        self.wait_until("c", lambda: len(self.live_workers()) == 3)
        nodes, connections = self.doctor()
        self.assertIn("may lock 64 KiB", nodes["c"]["memlock"]["found"])
        self.assertNotIn("64 KiB", nodes["a"]["memlock"]["found"])
        self.assertEqual(len(connections), 3)
        for c in connections:
            self.assertEqual(c["ok"], "c" not in c["found"].split(":")[0].split(" - "), c)
            if not c["ok"]:
                self.assertRegex(c["found"], "port")
                self.assertIn("data ports", c["mend"])

    def test_who_is_not_asked(self):
        """A drained worker gets no application; one that is killed while it looks is named."""
        self.serve(workers=("a", "b"))
        self.ok("drain", "b")
        nodes, connections = self.doctor()
        self.assertEqual((set(nodes), connections), ({"a", "b"}, []))
        self.fails(3, "start it", "doctor", "--workers", "--address", "127.0.0.1:%d" % self.free_port())


if __name__ == "__main__":
    unittest.main()
