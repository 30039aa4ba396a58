# SPDX-License-Identifier: Apache-2.0
.PHONY: demo
demo:
	@mk/deps.sh
	@+$(BUILD_SH) all
	@B=$(B) mk/demo.sh
