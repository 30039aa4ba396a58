# SPDX-License-Identifier: Apache-2.0
# The longer tests; docs/TESTING.md describes each.
#   ndebug    the whole suite, with a build without asserts, as packages are built
#   asan      the whole suite, daemons included, with ASan, UBSan and LSan
#   asan-faults  every call site of frag fails once (mk/faults.mk), with such a build
#   coverage  the whole suite, and which lines and branches it took; fails below 90 % of the
#             branches of the cores and the codec
#   tsan      the whole suite with ThreadSanitizer
#   tsan-queues  the tests of the queue, the pump and the ring alone, as a part of make check
#   criterion  the tests in C by Criterion itself, which judges tests/mini_criterion
#   valgrind  unit and conformance tests under valgrind
#   aarch64   everything built for aarch64, its test programs under qemu-user
#   proof     what every submission must pass after make check
#   nightly   all of these in their long form; STEPS="sim fuzz" runs some steps of either
#             (mk/proof.sh)

# How many programs with tests that failed may run once more (tests/run.py); nightly says 0.
AGAIN ?= 4
# SHARE=K/N: only a part of the test programs (tests/run.py), and only these are built. K of proof
# follows from the content of the tree.
CHOICE = $(if $(SHARE),--share $(SHARE)) $(if $(ONLY),--only $(ONLY))
# How tests/run.py is told of the checker of this build.
CHECKER := $(if $(findstring thread,$(EXTRA_CFLAGS)),--threads)$(if \
	$(findstring address,$(EXTRA_CFLAGS)),--sanitized)
tests: $(if $(SHARE)$(ONLY),$(filter $(TEST_BIN),$(shell python3 tests/run.py --build $(B) --targets \
	$(CHECKER) $(CHOICE))),$(TEST_BIN))
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Warnings are off (-w), because in instrumented code gcc cannot see what is initialised. Reports
# name lines and no variables, so that -g1 is enough.
ASAN_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-asan CFLAGS="-O1 -g1" WERROR= \
	EXTRA_CFLAGS="$(ASAN_FLAGS) -w" \
	EXTRA_LDFLAGS="$(ASAN_FLAGS)"
TSAN_FLAGS := -fsanitize=thread
MINI_CRITERION = -Itests/mini_criterion tests/mini_criterion/main.c
TSAN_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-tsan \
	CFLAGS="-O1 -g1" WERROR= EXTRA_CFLAGS="$(TSAN_FLAGS) -w" \
	EXTRA_LDFLAGS="$(TSAN_FLAGS)"

# -O0, so that every counted branch is one of the source. The other builds report warnings.
COVERAGE_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-cov CFLAGS="-O0 -g" WERROR= \
	EXTRA_CFLAGS="--coverage -fprofile-update=atomic -w" EXTRA_LDFLAGS=--coverage

# The queue, the pump and the ring of shared memory alone, with what they stand on, so that it is
# quick enough for make check.
QUEUES_SRC = $(wildcard libfrag/src/base/*.c libfrag/src/data/*.c) \
	$(addprefix libfrag/src/edge/,edge.c queue.c pump.c pump_spin.c backup_poller.c)
QUEUES_MAKE = $(TSAN_MAKE) B=build-tsan-queues DRIVERD_A= WORKERD_A= WIRE_SRC= \
	LIBFRAG_SRC="$(QUEUES_SRC)"

.PHONY: ndebug asan asan-faults tsan tsan-queues tsan-queues-build coverage criterion valgrind \
	aarch64 proof nightly
ndebug:
	@mk/deps.sh
	@$(MAKE) --no-print-directory -s -j$$(nproc) B=build-ndebug NDEBUG=1 tests
	@python3 tests/run.py --build build-ndebug --again $(AGAIN) $(CHOICE)
asan:
	@mk/deps.sh
	@$(ASAN_MAKE) tests
	@tests/checkers/checkers.sh build-asan/checkers --sanitized "LeakSanitizer: detected" \
		$(CC) -g $(ASAN_FLAGS) $(MINI_CRITERION)
	@python3 tests/run.py --build build-asan --sanitized --again $(AGAIN) $(CHOICE)
asan-faults:
	@mk/deps.sh
	@$(ASAN_MAKE) faults SANITIZED=1
tsan:
	@mk/deps.sh
	@$(TSAN_MAKE) tests
	@tests/checkers/checkers.sh build-tsan/checkers --threads "data race" $(CC) -g \
		$(TSAN_FLAGS) $(MINI_CRITERION)
	@python3 tests/run.py --build build-tsan --threads --again $(AGAIN) $(CHOICE)
tsan-queues-build:
	@$(QUEUES_MAKE) $(addprefix build-tsan-queues/tests/unit/test_,queue pump pump_spin \
		pump_backup lock shm_ring)
tsan-queues: tsan-queues-build
	@python3 tests/run.py --build build-tsan-queues --threads --only tests/unit/
coverage:
	@mk/deps.sh nightly
	@$(COVERAGE_MAKE) tests
	@find build-cov -name '*.gcda' -delete
	@python3 tests/run.py --build build-cov
	@python3 mk/coverage.py build-cov >build-cov/coverage.txt; \
		status=$$?; cat build-cov/coverage.txt; exit $$status
criterion:
	@mk/deps.sh nightly
	@$(MAKE) --no-print-directory -s -j$$(nproc) B=build-criterion BY_CRITERION=1 WERROR= \
		EXTRA_LDFLAGS="-Wl,--as-needed -lcriterion" tests
	@python3 tests/run.py --build build-criterion --only $(or $(ONLY),tests/unit/)
valgrind:
	@mk/deps.sh nightly
	@$(MAKE) --no-print-directory -s -j$$(nproc) B=build-valgrind \
		CFLAGS="-O1 -g" tests
	@tests/checkers/checkers.sh build-valgrind/checkers --valgrind "definitely lost" $(CC) -g \
		$(MINI_CRITERION)
	@python3 tests/run.py --build build-valgrind --valgrind $(if $(ONLY),--only $(ONLY))
aarch64:
	@mk/deps.sh aarch64
	@tests/aarch64.sh
	@$(MAKE) --no-print-directory python-aarch64
proof nightly:
	@mk/proof.sh $@ $(STEPS)
