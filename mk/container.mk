# SPDX-License-Identifier: Apache-2.0
# A container image (deploy/container) of what make install installs, and what it does in podman.
.PHONY: container container-check
container:
	@mk/deps.sh container
	@rm -rf $(B)/container
	@mkdir -p $(B)
	@$(MAKE) --no-print-directory -s install prefix=/usr DESTDIR=$(abspath $(B))/container \
		>$(B)/container.log
	@deploy/container/build.sh $(B)/container
container-check: container
	@tests/nodes/container.sh frag
