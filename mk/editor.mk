# SPDX-License-Identifier: Apache-2.0
# The schema of graphs (fragctl schema), judged by check-jsonschema over all examples and mistakes.
EDITOR := .cache/editor
.PHONY: editor
editor:
	@python3 -m pip --version >/dev/null 2>&1 || mk/deps.sh ai
	@[ -e $(EDITOR)/complete ] || { rm -rf $(EDITOR) && python3 -m pip install --quiet \
		--require-hashes --no-deps --target $(EDITOR) \
		--requirement mk/requirements-editor.txt && touch $(EDITOR)/complete; }
	@+$(BUILD_SH) tests ONLY=test_schema
	@FRAG_CHECK_SCHEMA=$(abspath $(EDITOR)) python3 tests/run.py --build $(B) --only test_schema
