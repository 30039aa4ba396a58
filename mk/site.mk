# SPDX-License-Identifier: Apache-2.0
# The documents as a site (mk/site.py). make site-check also types the pages, looks at the spelling,
# and has Chromium open pages while nothing else answers: none may ask for anything.
SITE_PACKAGES := .cache/site
.PHONY: site site-check
site:
	@mk/deps.sh site $(SITE_CHECK)
	@[ -e $(SITE_PACKAGES)/complete ] || { rm -rf $(SITE_PACKAGES) && \
		python3 -m pip install --quiet \
		--require-hashes --no-deps --target $(SITE_PACKAGES) \
		--requirement mk/requirements-site.txt && touch $(SITE_PACKAGES)/complete; }
	@python3 mk/site.py --build $(B) --packages $(SITE_PACKAGES) $(if $(SITE_CHECK),--check)
site-check:
	@+$(BUILD_SH) all
	@$(MAKE) --no-print-directory -s site SITE_CHECK=1
	@mk/prose.py --spelling README.md HACKING.md docs/*.md docs/site/*.md
	@FRAG_SITE=$(abspath $(B))/site/html python3 tests/run.py --build $(B) --only test_site
