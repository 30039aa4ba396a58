# SPDX-License-Identifier: Apache-2.0
# Debian packages, from deploy/debian and the VERSION of the Makefile, and their tests.
#   deb    builds them into build-deb/ARCH and checks them (mk/deb.sh). ARCH=arm64: for another
#          architecture; REVISION=2: newer ones of the same version
#   nodes  installs and runs them on machines of systemd-nspawn (tests/nodes); ONLY=OneMachine
ARCH ?= $(shell dpkg --print-architecture)

.PHONY: deb nodes
deb:
	@mk/deps.sh deb $(ARCH)
	@mk/deb.sh $(VERSION) $(ARCH) $(REVISION)
nodes:
	@mk/deps.sh nodes
	@mk/deb.sh $(VERSION) $(ARCH)
	@python3 tests/nodes/test_machines.py build-deb/$(ARCH) $(ONLY)
