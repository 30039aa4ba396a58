# SPDX-License-Identifier: Apache-2.0
# Debian packages, from deploy/debian and the VERSION of the Makefile, and their tests.
#   deb    builds them into build-deb/ARCH and checks them (mk/deb.sh). ARCH=arm64: for another
#          architecture; REVISION=2: newer ones of the same version
#   nodes  installs and runs them on machines of systemd-nspawn (tests/nodes); ONLY=OneMachine
#   limits  runs them in qemu, whose kernel has control groups; skipped where that is missing
#   paused  a worker of the build in qemu, which is paused; skipped where that is missing
ARCH ?= $(shell dpkg --print-architecture)

.PHONY: deb nodes limits paused
deb:
	@mk/deps.sh deb $(ARCH)
	@mk/deb.sh $(VERSION) $(ARCH) $(REVISION)
nodes:
	@mk/deps.sh nodes
	@mk/deb.sh $(VERSION) $(ARCH)
	@python3 tests/nodes/test_machines.py build-deb/$(ARCH) $(ONLY)
paused:
	@mk/deps.sh paused || true
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@FRAG_PAUSED=1 python3 tests/run.py --only test_paused
limits:
	@mk/deps.sh limits || true
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(B)/tests/sample_plugins/libhungry.so
	@mk/deb.sh $(VERSION) $(ARCH)
	@python3 tests/nodes/test_limits.py build-deb/$(ARCH) $(B)/tests/sample_plugins/libhungry.so
