# SPDX-License-Identifier: Apache-2.0
# Static checks. clang-tidy (.clang-tidy lists its checks) only checks files that have changed.
LINT_SRC := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
LINT_H := $(filter %.h,$(LINT_SRC))
LINT_TIDY := $(filter-out $(if $(BENCH_GST),,tests/bench/gst.c),$(filter %.c,$(LINT_SRC)))
LINT_PKG = $(eval LINT_PKG := $$(foreach p,ucx gstreamer-1.0 $$(OPS_PKG),$$(shell $$(PKG_CONFIG) \
	--cflags $$(p) 2>/dev/null | sed 's/-I/-isystem /g')))$(LINT_PKG)
LINT_FLAGS = -std=gnu11 -DFRAG_VERSION='"$(VERSION)"' -DFUZZ_DIR='""' -Ilibfrag/include \
	-Ilibfrag/src -Ilibfrag -Ilibfrag/ops \
	-Iproto -I. -Itests -Itests/mini_criterion -isystem $(B)/gen $(LINT_PKG) \
	$(PYTHON_INC:%=-isystem %)

.PHONY: lint lint-style lint-headers lint-docs lint-cppcheck lint-tidy lint-clang
lint:
	@mk/deps.sh nightly
	@$(MAKE) --no-print-directory -s -j$$(nproc) lint-style lint-headers lint-docs lint-cppcheck \
		lint-tidy lint-clang
	@echo "lint: $(words $(LINT_SRC)) files, nothing found"
lint-style:
	@clang-format --dry-run -Werror $(LINT_SRC)
	@mk/layers.py
	@mk/limits.py
	@mk/names.py
	@mk/reference.py --check $(DOCS_H)
# The public headers compile without warnings as C99 and C++11, and each header compiles alone.
lint-headers:
	@for h in libfrag/include/frag/*.h; do \
		$(CC) -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c \
		-Ilibfrag/include $$h && \
		$(CXX) -std=c++11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c++ \
		-Ilibfrag/include $$h || exit 1; done
	@for h in $(LINT_H); do $(CC) -Werror -fsyntax-only -D_GNU_SOURCE -x c $(LINT_FLAGS) $$h \
		|| exit 1; done
# Doxygen makes the reference of the public headers without a warning.
lint-docs:
	@if command -v $(DOXYGEN) >/dev/null; then $(MAKE) --no-print-directory -s docs >/dev/null; \
	else echo "lint-docs: skipped: $(DOXYGEN) is not installed; mk/deps.sh nightly does it"; fi
lint-cppcheck:
	@cppcheck --quiet --error-exitcode=1 --inline-suppr --suppressions-list=mk/cppcheck.txt \
		--enable=warning,portability -DFRAG_VERSION='"$(VERSION)"' \
		$(filter-out -I$(B)%,$(DAEMON_INC)) \
		libfrag driverd workerd fragctl runner proto/wire
lint-tidy: $(LINT_TIDY:%=$(B)/lint/%)
$(B)/lint/%.c: %.c .clang-tidy tests/.clang-tidy $(LINT_H) | $(WIRE_GEN)
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(LINT_FLAGS) >$@.log 2>/dev/null || { cat $@.log; exit 1; }
	@mv $@.log $@
lint-headers lint-clang: $(WIRE_GEN)
# clang compiles all that the makefiles compile; examples have makefiles of their own. SHARE=K/N: a
# part of it.
lint-clang:
	@$(MAKE) --no-print-directory -nBs CC=clang EXAMPLES= SHARE= tests fuzz-build bench-programs \
		$(VIDEO_CHECK) $(addprefix $(B)/tests/,cuda_confined inference/run_model) | \
		mk/clang.py $(SHARE)
