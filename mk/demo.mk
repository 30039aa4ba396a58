# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-ai
demo:
	@mk/deps.sh
	@+$(BUILD_SH) all
	@B=$(B) mk/demo.sh

# With neural networks, on a web page; make deps-ai fetches them.
demo-ai: deps-ai
	@mk/deps.sh
	@+$(BUILD_SH) all
	@B=$(B) mk/demo-ai.sh
