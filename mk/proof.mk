# SPDX-License-Identifier: Apache-2.0
# What tries frag harder than its users can; docs/TESTING.md says what each does and found.
#   asan      the whole suite, daemons included, with ASan, UBSan and LSan
#   coverage  the whole suite, and which lines and branches it took; fails below 90 % of branches of the cores and the codec
#   valgrind  unit and conformance tests under valgrind
#   proof     what every submission passes after make check
#   nightly   the long form of all of it
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Instrumented code hides from gcc what initialises what, so its warnings are only told.
ASAN_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-asan CFLAGS="-O1 -g" WERROR= EXTRA_CFLAGS="$(ASAN_FLAGS) -w" \
	EXTRA_LDFLAGS="$(ASAN_FLAGS)"

# -O0: a branch in the table is one in the source. Warnings are told by the other builds.
COVERAGE_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-cov CFLAGS="-O0 -g" WERROR= \
	EXTRA_CFLAGS="--coverage -fprofile-update=atomic -w" EXTRA_LDFLAGS=--coverage

.PHONY: asan coverage valgrind proof nightly
asan:
	@mk/deps.sh
	@$(ASAN_MAKE) tests
	@python3 tests/run.py --build build-asan --sanitized
coverage:
	@mk/deps.sh proof
	@$(COVERAGE_MAKE) tests
	@find build-cov -name '*.gcda' -delete
	@python3 tests/run.py --build build-cov
	@python3 mk/coverage.py build-cov
valgrind:
	@mk/deps.sh proof
	@$(MAKE) --no-print-directory -s -j$$(nproc) tests
	@python3 tests/run.py --build $(B) --valgrind
proof nightly:
	@mk/deps.sh proof
	@mk/proof.sh $@
