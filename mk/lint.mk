# SPDX-License-Identifier: Apache-2.0
LINT_SRC = $(shell git ls-files '*.c' '*.h')

.PHONY: lint
lint:
	@clang-format --dry-run -Werror $(LINT_SRC)
	@mk/layers.py
	@for h in libfrag/include/frag/*.h; do \
		$(CC) -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c -Ilibfrag/include $$h && \
		$(CXX) -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ -Ilibfrag/include $$h || exit 1; done
	@cppcheck --quiet --error-exitcode=1 --inline-suppr --suppressions-list=mk/cppcheck.txt \
		--enable=warning,portability -j$$(nproc) -DFRAG_VERSION='"$(VERSION)"' $(filter-out -I$(B)%,$(DAEMON_INC)) \
		libfrag driverd workerd fragctl proto/wire
