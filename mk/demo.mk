# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-here
demo:
	@mk/deps.sh
	@$(MAKE) --no-print-directory -s -j$$(nproc) demo-here
demo-here: all
	@B=$(B) mk/demo.sh
