# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-here
demo:
	@mk/deps.sh
	@echo "building into $(B)" >&2
	@$(MAKE) --no-print-directory -s -j$$(nproc) demo-here
demo-here: all
	@B=$(B) mk/demo.sh
