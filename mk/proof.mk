# SPDX-License-Identifier: Apache-2.0
# What tries frag harder than its users can; docs/TESTING.md says what each does.
#   asan      the whole suite, daemons included, with ASan, UBSan and LSan
ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
# Instrumented code hides from gcc what initialises what, so its warnings are only told.
ASAN_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build-asan CFLAGS="-O1 -g" WERROR= EXTRA_CFLAGS="$(ASAN_FLAGS)" \
	EXTRA_LDFLAGS="$(ASAN_FLAGS)"

.PHONY: asan
asan:
	@mk/deps.sh
	@$(ASAN_MAKE) tests
	@python3 tests/run.py --build build-asan --sanitized
