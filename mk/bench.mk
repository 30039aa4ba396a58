# SPDX-License-Identifier: Apache-2.0
# Benchmarks: programs that print numbers; no test depends on them.
BENCH_SRC := $(wildcard tests/bench/*.c)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)

$(B)/bench/%: tests/bench/%.c $(LIBFRAG_SO) $(if $(UCX_SRC),$(UCX_SO))
	@mkdir -p $(@D) $(B)/obj/tests/bench
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/bench/$*.d $(LIBFRAG_INC) $< $(ALL_LDFLAGS) -L$(B)/lib -lfrag -lm -Wl,-rpath,'$$ORIGIN/../lib' -o $@

.PHONY: bench
bench: all $(BENCH_BIN)
