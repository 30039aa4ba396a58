# SPDX-License-Identifier: Apache-2.0
# Threaded programs that ThreadSanitizer looks at, linked with libfrag's objects, so that all of it is instrumented.
TSAN_SRC := $(wildcard tests/tsan/*.c)
TSAN_BIN := $(TSAN_SRC:tests/%.c=$(B)/tests/%)

$(TSAN_BIN): $(B)/tests/tsan/%: tests/tsan/%.c $(LIBFRAG_A)
	@mkdir -p $(@D) $(B)/obj/tests/tsan
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/tsan/$*.d $(LIBFRAG_INC) $< $(LIBFRAG_A) $(ALL_LDFLAGS) -rdynamic -lyaml -ldl -lm -o $@

.PHONY: tsan tsan-here
tsan:
	@$(MAKE) --no-print-directory B=$(B)-tsan EXTRA_CFLAGS="-fsanitize=thread -Wno-tsan -O1" EXTRA_LDFLAGS="-fsanitize=thread" tsan-here
tsan-here: $(TSAN_BIN)
	@for t in $(TSAN_BIN); do echo $$t; TSAN_OPTIONS="halt_on_error=1 $$TSAN_OPTIONS" $$t || exit 1; done
