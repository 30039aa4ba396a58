# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: one file for each target in tests/fuzz, its corpus in tests/fuzz/corpus
# (tests/fuzz/corpus.py reads and writes it), its mutator (if it has one) in tests/fuzz/mutate. Each
# target is built twice: by clang with libFuzzer, ASan and UBSan into build-fuzz, and by any
# compiler into tests/fuzz/test_corpus, which runs the corpora as plain tests.
FUZZ_TARGETS := control source graph arguments units value message ledger remote tls sealed shm \
	$(if $(UCX_SRC),ucx preface)
FUZZ_DIR := $(abspath tests/fuzz)
FUZZ_INC := -Itests -Ilibfrag $(WIRE_INC) -I.
FUZZ_UCX_OBJ := $(filter-out %/sockets.o %/port_range.o %/gate.o %/probe.o, \
	$(UCX_SRC:%.c=$(B)/obj/%.o))
FUZZ_CRYPTO_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard libfrag/modules/crypto/*.c))
# The ucx and the shm module have the same symbol for their tables.
FUZZ_SHM_OBJ := $(B)/obj/tests/fuzz/shm_table.o \
	$(patsubst %.c,$(B)/obj/%.o,$(filter-out %/shm.c,$(wildcard libfrag/modules/shm/*.c)))
FUZZ_LIBS = $(DRIVERD_A) $(WORKERD_A) $(WIRE_A) $(LIBFRAG_A) -lyaml $(UV_LIBS) $(PROTOBUF_LIBS) \
	$(TLS_LIBS) $(SECCOMP_LIBS) -ldl -lm
FUZZ_ARCHIVES = $(DRIVERD_A) $(WORKERD_A) $(WIRE_A) $(LIBFRAG_A)

# All targets in one program; each function that libFuzzer would call gets the name of its target.
$(B)/obj/tests/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(FUZZ_INC) -DFUZZ_DIR='"$(FUZZ_DIR)"' \
		$(if $(filter $*,$(FUZZ_TARGETS)),-DLLVMFuzzerTestOneInput=fuzz_$*) \
		$(if $(UCX_SRC),-DHAVE_UCX=1 $(shell $(PKG_CONFIG) --cflags ucx)) -c $< -o $@
$(B)/obj/tests/fuzz/%.o: ALL_CFLAGS += -Wno-missing-prototypes
$(B)/obj/tests/fuzz/shm_table.o: libfrag/modules/shm/shm.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFRAG_INC) -Dfragi_transport_v1=fuzz_shm_transport -c $< -o $@
$(B)/tests/fuzz/test_corpus: $(FUZZ_TARGETS:%=$(B)/obj/tests/fuzz/%.o) \
		$(B)/obj/tests/fuzz/test_corpus.o \
		$(if $(UCX_SRC),$(B)/obj/tests/fuzz/fake_ucp.o $(FUZZ_UCX_OBJ)) \
		$(FUZZ_CRYPTO_OBJ) $(FUZZ_SHM_OBJ) $(FUZZ_ARCHIVES) $(CRITERION)
	@mkdir -p $(@D)
	$(CC) $(filter %.o,$^) $(ALL_LDFLAGS) $(FUZZ_LIBS) $(into_place)
TEST_BIN += $(B)/tests/fuzz/test_corpus

# The targets with libFuzzer; called with B=build-fuzz and the flags below.
FUZZ_BIN := $(FUZZ_TARGETS:%=$(B)/fuzz/%)
$(FUZZ_BIN): $(B)/fuzz/%: tests/fuzz/%.c $(FUZZ_ARCHIVES)
	@mkdir -p $(@D) $(B)/obj/fuzz
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/fuzz/$*.d -MT $@ $(FUZZ_INC) \
		$(if $(filter ucx,$*),$(shell $(PKG_CONFIG) --cflags ucx)) $< \
		$(wildcard tests/fuzz/mutate/$*.c) \
		$(if $(filter ucx,$*),tests/fuzz/fake_ucp.c $(FUZZ_UCX_OBJ)) \
		$(if $(filter preface,$*),$(B)/obj/libfrag/modules/ucx/preface.o) \
		$(if $(filter sealed,$*),$(FUZZ_CRYPTO_OBJ)) \
		$(if $(filter shm,$*),$(FUZZ_SHM_OBJ)) \
		-fsanitize=fuzzer $(ALL_LDFLAGS) $(FUZZ_LIBS) $(into_place)
$(filter %/ucx,$(FUZZ_BIN)): $(FUZZ_UCX_OBJ) tests/fuzz/fake_ucp.c
$(filter %/sealed,$(FUZZ_BIN)): $(FUZZ_CRYPTO_OBJ)
$(filter %/shm,$(FUZZ_BIN)): $(FUZZ_SHM_OBJ)
$(filter %/preface,$(FUZZ_BIN)): $(B)/obj/libfrag/modules/ucx/preface.o

# An instrumented program is ten times as slow and takes three times the memory: these limits
# correspond to 1 s and 256 MB of a normal build.
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_LIMITS := -timeout=10 -rss_limit_mb=768 -max_len=65536
FUZZ_ENV := \
	ASAN_OPTIONS=quarantine_size_mb=32:allocator_may_return_null=1:detect_stack_use_after_return=0
FUZZ_MAKE = $(MAKE) --no-print-directory -s B=build-fuzz CC=clang CFLAGS="-O1 -g" \
	EXTRA_CFLAGS="$(FUZZ_FLAGS) -DFUZZING_BUILD=1" \
	EXTRA_LDFLAGS="-fsanitize=address,undefined"
TIME ?= 60
FUZZ_COVERAGE_MAKE = $(MAKE) --no-print-directory -s B=build-fuzzcov CC=clang CFLAGS="-O1 -g" \
	EXTRA_CFLAGS="-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping" \
	EXTRA_LDFLAGS="-fprofile-instr-generate"
.PHONY: fuzz fuzz-build fuzz-one fuzz-coverage
fuzz-build: $(FUZZ_BIN)
fuzz-one:
	@$(FUZZ_MAKE) -j$$(nproc) build-fuzz/fuzz/$(TARGET)
# make fuzz TARGET=graph TIME=600; without TARGET all targets run, TIME seconds each, one on each
# core. Findings are stored in build-fuzz/found; the other targets run to their end before make
# fails.
fuzz:
	@mk/deps.sh nightly
	@$(FUZZ_MAKE) -j$$(nproc) fuzz-build
	@printf '%s\n' $(or $(TARGET),$(FUZZ_TARGETS)) | $(FUZZ_ENV) xargs -P $$(nproc) -I TARGET \
		tests/fuzz/run.sh build-fuzz TARGET $(TIME) $(FUZZ_LIMITS)
	@echo "fuzz: nothing found in $(TIME) s each of $(or $(TARGET),$(FUZZ_TARGETS))"
# The share of lines that the committed corpus of each target reaches, of the code that it fuzzes;
# fails below 80 %.
fuzz-coverage:
	@mk/deps.sh nightly
	@$(FUZZ_COVERAGE_MAKE) -j$$(nproc) fuzz-build
	@tests/fuzz/coverage.sh build-fuzzcov $(or $(TARGET),$(FUZZ_TARGETS))
