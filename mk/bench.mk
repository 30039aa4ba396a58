# SPDX-License-Identifier: Apache-2.0
# Benchmarks print figures; docs/BENCHMARKS.md explains them.
#   bench               all of them, or
#                       PART="hop threads edge shm encrypted start graph control viewer video
#                       inference realtime python gpu"; into build/bench.md and bench.json
#                       too; PART=peers: beside others, which it fetches from PyPI (360 MB)
#   bench-planted       makes what they measure worse on purpose, in a copy of the tree, and shows
#                       that their rows move (takes an hour); NAME="ticks ..." for some of them
#   bench-instructions  instructions per hop and message, by callgrind, within 5 % of
#                       tests/bench/instructions.txt (takes minutes)
BENCH_GST := $(shell $(PKG_CONFIG) --exists gstreamer-1.0 2>/dev/null && echo yes)
BENCH_SRC := $(filter-out $(if $(BENCH_GST),,tests/bench/gst.c) tests/bench/copies.c,\
	$(wildcard tests/bench/*.c))
BENCH_TBB := $(if $(shell $(PKG_CONFIG) --exists tbb 2>/dev/null && command -v g++),$(B)/bench/tbb)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%) $(BENCH_TBB)
BENCH_SO := $(B)/bench/libbench.so

$(B)/bench/gst: ALL_CFLAGS += $(shell $(PKG_CONFIG) --cflags gstreamer-1.0 2>/dev/null | \
	sed 's/-I/-isystem /g')
$(B)/bench/gst: ALL_LDFLAGS += $(shell $(PKG_CONFIG) --libs gstreamer-1.0 2>/dev/null)
$(B)/bench/tbb: tests/bench/tbb.cc
	@mkdir -p $(@D)
	g++ -O2 -std=c++17 -Wall -Wextra $< $(shell $(PKG_CONFIG) --libs tbb) $(into_place)
$(B)/bench/%: tests/bench/%.c $(LIBFRAG_SO) $(MODULE_SO)
	@mkdir -p $(@D) $(B)/obj/tests/bench
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/bench/$*.d -MT $@ $(LIBFRAG_INC) $< $(filter %.o,$^) \
		-L$(B)/lib -lfrag \
		$(ALL_LDFLAGS) -lyaml -lm -Wl,-rpath,'$$ORIGIN/../lib' $(into_place)

$(B)/bench/edge: $(B)/obj/workerd/host/socket_calls.o

# Control connections: what the daemons link.
$(B)/bench/control: $(WIRE_A)
$(B)/bench/control: private ALL_CFLAGS += $(WIRE_INC)
$(B)/bench/control: private ALL_LDFLAGS += $(WIRE_A) $(UV_LIBS) $(PROTOBUF_LIBS) $(TLS_LIBS)

$(BENCH_SO): $(wildcard tests/bench/plugin/*.c tests/bench/plugin/*.h) $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(BENCH_PTX_FLAG) -shared -Ilibfrag/include \
		$(filter %.c,$^) \
		$(ALL_LDFLAGS) -L$(B)/lib -lfrag -Wl,-rpath,'$$ORIGIN/../lib' $(into_place)

# Kernels of the benchmarks on GPUs, and the converter, whose kernel is measured alone.
ifneq ($(NVCC),)
BENCH_PTX := $(B)/gen/tests/bench/plugin/gpu_kernels.ptx
BENCH_PTX_FLAG := -DBENCH_PTX='"$(BENCH_PTX)"'
$(BENCH_SO) $(B)/bench/gpu $(B)/bench/twins: $(BENCH_PTX)
endif
$(B)/bench/network: $(patsubst %,$(B)/obj/libfrag/ops/inference/%.o,onnxruntime_engine library gpu)
$(B)/bench/network: private ALL_CFLAGS += -Ilibfrag/ops
$(B)/bench/gpu $(B)/bench/twins: $(CONVERTER_OBJ)
$(B)/bench/gpu $(B)/bench/twins: private ALL_CFLAGS += -Ilibfrag/ops $(BENCH_PTX_FLAG)

# A floor for ticks in Python. nanobind comes from PyPI.
BENCH_NANOBIND = $(if $(shell command -v g++ && python3 -m pip --version 2>/dev/null),$(if \
	$(PYTHON_FOUND),$(B)/bench/python_nanobind.so))
NANOBIND := .cache/nanobind
$(NANOBIND)/complete: tests/bench/requirements.txt
	@rm -rf $(NANOBIND)
	@python3 -m pip install --quiet --require-hashes --only-binary=:all: --no-deps \
		--target $(NANOBIND) --requirement $< 2>/dev/null && touch $@
$(B)/bench/python_nanobind.so: tests/bench/python_nanobind.cc $(NANOBIND)/complete
	@mkdir -p $(@D)
	g++ -std=c++17 -O2 -DNDEBUG -shared -fPIC -fvisibility=hidden -fno-strict-aliasing \
		-I$(PYTHON_INC) -I$(NANOBIND)/nanobind/include \
		-I$(NANOBIND)/nanobind/ext/robin_map/include \
		$(NANOBIND)/nanobind/src/nb_combined.cpp \
		$< $(into_place)

.PHONY: bench bench-programs bench-programs-here bench-instructions bench-planted
bench-programs-here: all $(PYTHON_FOUND) $(BENCH_BIN) $(BENCH_SO) $(B)/tests/video/make_clip
bench-programs: bench-programs-here gpu-check-kit
PEERS := .cache/peers
bench:
	@mk/deps.sh bench
	@$(if $(filter peers,$(PART)),$(MAKE) --no-print-directory -s deps-peers)
	@$(MAKE) --no-print-directory -s -j$$(nproc) bench-programs
	-@$(if $(BENCH_NANOBIND),$(MAKE) --no-print-directory -s $(BENCH_NANOBIND))
	@python3 tests/bench/bench.py --build $(B) $(PART)
.PHONY: deps-peers
deps-peers:
	@python3 -m pip --version >/dev/null 2>&1 || mk/deps.sh ai
	@[ $(PEERS)/complete -nt mk/requirements-peers.txt ] || { rm -rf $(PEERS) && \
		python3 -m pip install --quiet --require-hashes --no-deps --target $(PEERS) \
		--requirement mk/requirements-peers.txt && touch $(PEERS)/complete; }
bench-planted: bench-programs-here
	@python3 tests/planted/bench.py --build $(B) $(NAME)
bench-instructions:
	@mk/deps.sh proof
	@$(MAKE) --no-print-directory -s -j$$(nproc) all $(B)/bench/hop $(B)/bench/edge $(BENCH_SO)
	@python3 tests/bench/instructions.py --build $(B)
