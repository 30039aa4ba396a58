# SPDX-License-Identifier: Apache-2.0
# The page of fragctl web in headless Chromium; axe-core judges its accessibility. make page
# PICTURES=docs/pictures makes the picture of the documents.
AXE := .cache/axe
.PHONY: page
page:
	@mk/deps.sh nightly
	@python3 -m pip --version >/dev/null 2>&1 || mk/deps.sh ai
	@[ -e $(AXE)/complete ] || { rm -rf $(AXE) && python3 -m pip install --quiet \
		--require-hashes --no-deps --target $(AXE) --requirement mk/requirements-page.txt && \
		touch $(AXE)/complete; }
	@+$(BUILD_SH) tests ONLY=test_web_page
	@FRAG_BROWSER=1 FRAG_PICTURES=$(abspath $(PICTURES)) python3 tests/run.py --build $(B) \
		--only test_web_page
