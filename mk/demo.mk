# SPDX-License-Identifier: Apache-2.0
.PHONY: demo demo-ai demo-picture
demo:
	@begin=$$(date +%s); mk/deps.sh && \
		echo "packages: $$(($$(date +%s) - begin)) s" >&2
	@+begin=$$(date +%s); $(BUILD_SH) all && \
		echo "build: $$(($$(date +%s) - begin)) s" >&2
	@B=$(B) mk/demo.sh

# The picture of README.md.
demo-picture:
	@mk/deps.sh
	@+$(BUILD_SH) all
	@mk/picture.py docs/pictures/demo.svg

# With neural networks, on a web page; make deps-ai fetches them.
demo-ai: deps-ai
	@mk/deps.sh
	@+$(BUILD_SH) all
	@B=$(B) mk/demo-ai.sh
