# SPDX-License-Identifier: Apache-2.0
# The API reference, from the public headers: pages to read, and XML that a site can include.
DOCS_H := $(wildcard libfrag/include/frag/*.h)
DOXYGEN ?= doxygen

.PHONY: docs
docs: $(B)/docs/done
	@echo "$(B)/docs/html/index.html, $(B)/docs/xml/index.xml"
$(B)/docs/done: $(DOCS_H) mk/Doxyfile mk/reference.py mk/docs.mk
	@command -v $(DOXYGEN) >/dev/null || { \
		echo "make docs: $(DOXYGEN) is not installed; mk/deps.sh nightly does it" >&2; exit 3; }
	@mk/reference.py --check $(DOCS_H)
	@rm -rf $(@D) && mkdir -p $(@D)
	@{ cat mk/Doxyfile; echo "PROJECT_NUMBER = $(VERSION)"; echo "INPUT = libfrag/include/frag"; \
		echo "OUTPUT_DIRECTORY = $(@D)"; } | $(DOXYGEN) -
	@touch $@
