# SPDX-License-Identifier: Apache-2.0
# Tests: one program for each file, written for Criterion and run by tests/mini_criterion.
#   tests/unit            linked with the objects of libfrag, internals and all
#   tests/shared          linked with libfrag.so, as plugins are: for what loads shared objects
#   tests/operators       the same with the objects of the built-in operators; mk/ops.mk builds them
#   tests/conformance     the suite that every kind of edge must pass, linked with libfrag.so
#   tests/sample_plugins  shared objects that tests load
#   tests/integration     real daemons, driven by Python
# BY_CRITERION=1 (make criterion): they are linked with Criterion itself.
CRITERION := $(if $(BY_CRITERION),,$(B)/obj/tests/mini_criterion/main.o)
MINI_CRITERION_INC := $(if $(BY_CRITERION),,-Itests/mini_criterion)
UNIT_SRC := $(filter-out $(if $(UCX_SRC),,tests/unit/test_ucx%.c) \
	$(if $(filter web,$(WITHOUT)),tests/unit/test_http.c),$(wildcard tests/unit/*.c))
UNIT_BIN := $(UNIT_SRC:tests/%.c=$(B)/tests/%)
SHARED_TEST_SRC := $(wildcard tests/shared/*.c)
SHARED_TEST_BIN := $(SHARED_TEST_SRC:tests/%.c=$(B)/tests/%)
CONFORMANCE_SRC := $(filter-out $(if $(UCX_SRC),,tests/conformance/test_ucx%.c), \
	$(wildcard tests/conformance/test_*.c))
CONFORMANCE_PAIR := $(addprefix tests/conformance/,pair.c socket.c mischief.c message.c)
CONFORMANCE_BIN := $(CONFORMANCE_SRC:tests/%.c=$(B)/tests/%)
# What a program exports that opens the ucx module.
SOCKET_CALLS_OBJ := $(B)/obj/workerd/host/socket_calls.o
TEST_PLUGIN_SRC := $(wildcard tests/sample_plugins/*.c)
TEST_PLUGIN_SO := $(TEST_PLUGIN_SRC:tests/sample_plugins/%.c=$(B)/tests/sample_plugins/lib%.so) \
	$(B)/tests/sample_plugins/other/libtruth.so

$(B)/obj/tests/mini_criterion/main.o: tests/mini_criterion/main.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@
$(UNIT_BIN) $(SHARED_TEST_BIN) $(CONFORMANCE_BIN): $(CRITERION)

# Compiled and linked in two steps, so that a change of libfrag only links its tests again.
TEST_OBJ = $(B)/obj/tests/programs/%.o
# Optimising assertions takes most of a build, and UBSan makes compiling them take five times as
# long.
$(TEST_OBJ): ALL_CFLAGS += -O0 -fno-sanitize=undefined
# It fills and compares gigabytes.
$(B)/obj/tests/programs/conformance/pair.o: ALL_CFLAGS += -O2
$(B)/obj/tests/programs/unit/%.o: ALL_CFLAGS += -Itests $(WIRE_INC) -I.
$(B)/obj/tests/programs/shared/%.o: ALL_CFLAGS += -Itests $(LIBFRAG_INC) -I.
$(B)/obj/tests/programs/conformance/%.o: ALL_CFLAGS += $(LIBFRAG_INC) -Itests -Ilibfrag
$(UNIT_SRC:tests/%.c=$(TEST_OBJ)) $(SHARED_TEST_SRC:tests/%.c=$(TEST_OBJ)) \
$(CONFORMANCE_SRC:tests/%.c=$(TEST_OBJ)) $(CONFORMANCE_PAIR:tests/%.c=$(TEST_OBJ)) \
$(B)/obj/tests/programs/conformance/uct_put.o: \
$(TEST_OBJ): tests/%.c | $(WIRE_GEN)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(UNIT_BIN): $(B)/tests/%: $(TEST_OBJ) $(DRIVERD_A) $(WORKERD_A) $(if $(WIRE_SRC),$(WIRE_A)) \
	$(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(filter %.o,$^) $(filter %.a,$^) $(ALL_LDFLAGS) -rdynamic \
		-lyaml $(UV_LIBS) $(PROTOBUF_LIBS) $(TLS_LIBS) $(SECCOMP_LIBS) $(SQLITE_LIBS) \
		-ldl -lm $(into_place)

$(B)/tests/unit/test_redact: $(B)/obj/fragctl/redact.o
$(B)/tests/unit/test_ctl_tensors: $(addprefix $(B)/obj/fragctl/,test_compare.o test_tensor.o)
$(B)/tests/unit/test_compare: $(addprefix $(B)/obj/fragctl/,test_compare.o test_tensor.o)
$(B)/tests/unit/test_metrics: $(addprefix $(B)/obj/fragctl/,metrics.o samples.o)
$(B)/tests/unit/test_trace_take: $(addprefix $(B)/obj/fragctl/,trace_take.o trace_join.o)
$(B)/tests/unit/test_trace_waits: $(B)/obj/fragctl/trace_waits.o
$(B)/tests/unit/test_trace_write: $(addprefix $(B)/obj/fragctl/,perfetto.o trace_join.o trace_take.o \
	trace_waits.o trace_write.o)
$(B)/tests/unit/test_promise: $(addprefix $(B)/obj/fragctl/,promise.o json.o top_lines.o)
$(B)/tests/unit/test_roles: $(addprefix $(B)/obj/fragctl/,fail.o json.o roles.o)
# Whole verbs, with a driver that the test plays.
$(B)/tests/unit/test_verbs: $(addprefix $(B)/obj/fragctl/,begin.o drain.o events.o fail.o \
	filter.o health.o json.o logs.o look.o service.o service_print.o status.o stop.o swap.o \
	table.o top_draw.o top_lines.o top_opened.o top_print.o top_window.o)
$(B)/tests/unit/test_shell_parts: $(B)/obj/workerd/host/control.o
$(B)/tests/unit/test_shm_ring: $(B)/obj/libfrag/modules/shm/ring.o
$(B)/tests/unit/test_remote_lives: private ALL_LDFLAGS += -lcrypto
$(B)/tests/unit/test_remote_lives: \
	$(patsubst %,$(B)/obj/tests/programs/conformance/%.o,message mischief socket) \
	$(patsubst %.c,$(B)/obj/%.o,$(wildcard libfrag/modules/crypto/*.c))
$(B)/tests/unit/test_remote_clock: \
	$(patsubst %,$(B)/obj/tests/programs/conformance/%.o,message mischief socket)
$(B)/tests/unit/test_shm_heap $(B)/tests/unit/test_shm_lives $(B)/tests/unit/test_failing_library: \
	$(patsubst %.c,$(B)/obj/%.o,$(wildcard libfrag/modules/shm/*.c))
$(patsubst %,$(B)/obj/tests/programs/unit/test_shm_%.o,heap lives): ALL_CFLAGS += -Ilibfrag
$(B)/obj/tests/programs/unit/test_failing_library.o: ALL_CFLAGS += -Ilibfrag
$(B)/tests/unit/test_cuda_check: $(B)/obj/libfrag/modules/cuda/driver.o
$(B)/obj/tests/programs/unit/test_cuda_check.o: ALL_CFLAGS += -Ilibfrag \
	$(if $(CUDA_H),-DFRAG_CUDA_TOOLKIT -isystem $(dir $(CUDA_H)))
# The module, over a UCX of the test's own.
$(B)/tests/unit/test_ucx_lives: private ALL_LDFLAGS += -lcrypto
$(B)/tests/unit/test_ucx_lives: $(patsubst %,$(B)/obj/libfrag/modules/ucx/%.o, \
	address endpoint log message preface ucx)
$(B)/obj/tests/programs/unit/test_ucx_lives.o: ALL_CFLAGS += -Ilibfrag \
	$(if $(UCX_SRC),$(shell $(PKG_CONFIG) --cflags ucx))
# What of it needs no UCX.
$(B)/tests/unit/test_ucx_parts: private ALL_LDFLAGS += -lcrypto
$(B)/tests/unit/test_ucx_parts: $(patsubst %,$(B)/obj/libfrag/modules/ucx/%.o, \
	port_range preface probe sockets)
$(B)/obj/tests/programs/unit/test_ucx_parts.o: ALL_CFLAGS += -Ilibfrag \
	$(if $(UCX_SRC),$(shell $(PKG_CONFIG) --cflags ucx))
# All that they print of drawn answers: what stays out opens a terminal, runs an application, or
# connects to a driver.
$(B)/tests/unit/test_views: $(patsubst fragctl/%.c,$(B)/obj/fragctl/%.o,$(filter-out \
	$(addprefix fragctl/,complete.c daemons.c driver.c driver_find.c local.c main.c run.c \
	run_clients.c run_top.c top_screen.c) fragctl/web/%,$(FRAGCTL_SRC)))
# The same of the verb trace, with figures that the test gives.
$(B)/tests/unit/test_ctl_trace: $(patsubst %,$(B)/obj/fragctl/%.o,begin fail filter json look \
	service service_print table top_draw top_lines top_opened top_print top_window trace)
# What fragctl run comes to, and the flags of all verbs: all but the ways that it runs in.
$(B)/tests/unit/test_ctl_run: $(patsubst fragctl/%.c,$(B)/obj/fragctl/%.o,$(filter-out \
	$(addprefix fragctl/,complete.c daemons.c local.c main.c run_clients.c run_top.c \
	top_screen.c),$(FRAGCTL_SRC)))
# fragctl run by daemons, which the test plays.
$(B)/tests/unit/test_ctl_daemons: $(patsubst %,$(B)/obj/fragctl/%.o,command daemons fail json \
	run_top)
# The same of the page in the browser, with a server that the test plays.
$(B)/tests/unit/test_web_dialogues: $(patsubst %,$(B)/obj/fragctl/%.o,begin fail filter json look \
	metrics promise samples service service_print table tap top_draw top_lines top_opened \
	top_print top_window $(addprefix web/,ask echo feed routes scrape server start))
$(B)/tests/unit/test_ctl_child: $(patsubst %,$(B)/obj/fragctl/%.o,begin child fail json)
# Of interpreters that the test plays.
$(B)/tests/unit/test_ctl_python: private ALL_LDFLAGS += -Wl,--wrap=frag_loader_register
$(B)/tests/unit/test_ctl_python: $(B)/obj/fragctl/python.o
# Of devices that the test plays.
$(B)/tests/unit/test_cameras: $(patsubst %,$(B)/obj/fragctl/%.o,begin cameras fail json)
# The server alone, whose browsers the test plays.
$(B)/tests/unit/test_http: private ALL_LDFLAGS += $(shell $(PKG_CONFIG) --libs libmicrohttpd)
$(B)/tests/unit/test_http: $(B)/obj/fragctl/http/module.o
# What types print, of tables that the test has.
$(B)/tests/unit/test_ctl_types: $(patsubst %,$(B)/obj/fragctl/%.o,begin fail inspect_print \
	json schema table)
$(B)/tests/unit/test_filter: $(addprefix $(B)/obj/fragctl/,fail.o filter.o json.o)
$(B)/tests/unit/test_doctor: $(patsubst %,$(B)/obj/fragctl/doctor_%.o,checks devices files memory \
	network node rights time)
# What fragctl top shows, without a terminal.
$(B)/tests/unit/test_top: $(addprefix $(B)/obj/fragctl/,top_draw.o top_lines.o top_opened.o \
	top_print.o json.o table.o)
# The same on a terminal, of which the test reads what ncurses holds.
$(B)/tests/unit/test_top_screen: private ALL_LDFLAGS += -lncursesw -ltinfo
$(B)/tests/unit/test_top_screen: $(patsubst %,$(B)/obj/fragctl/%.o,begin fail filter json look \
	service service_print table top_draw top_lines top_opened top_print top_screen top_window)

$(SHARED_TEST_BIN): $(B)/tests/%: $(TEST_OBJ) $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) $(filter %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag -lm \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(into_place)

$(CONFORMANCE_BIN): $(B)/tests/%: $(TEST_OBJ) $(CONFORMANCE_PAIR:tests/%.c=$(TEST_OBJ)) \
	$(SOCKET_CALLS_OBJ) $(LIBFRAG_SO) $(MODULE_SO)
	@mkdir -p $(@D)
	$(CC) $(filter %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag -lm \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(into_place)

# The first ones call UCX itself or test parts of the module alone; the last one inspects a peer.
CONFORMANCE_UCP := $(patsubst %,$(B)/tests/conformance/test_ucx_%,forged changed sockets)
$(B)/obj/tests/programs/conformance/test_shm_steps.o: ALL_CFLAGS += -Ilibfrag
$(patsubst %,$(B)/obj/tests/programs/conformance/test_ucx_%.o,forged changed sockets gate answers): \
	ALL_CFLAGS += \
	$(if $(UCX_SRC),$(shell $(PKG_CONFIG) --cflags ucx))
$(B)/tests/conformance/test_ucx_sockets: $(B)/obj/libfrag/modules/ucx/sockets.o
# The shm module with its steps, at which this program kills a host.
CONFORMANCE_STEPS := $(B)/tests/conformance/test_shm_steps
CONFORMANCE_STEPS_OBJ := $(patsubst libfrag/modules/shm/%.c,$(B)/obj/tests/shm_steps/%.o, \
	$(wildcard libfrag/modules/shm/*.c))
$(CONFORMANCE_STEPS_OBJ): $(B)/obj/tests/shm_steps/%.o: libfrag/modules/shm/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFRAG_INC) -DSHM_STEPPED -c $< -o $@
$(CONFORMANCE_STEPS): $(CONFORMANCE_STEPS_OBJ)
CONFORMANCE_GATE := $(B)/tests/conformance/test_ucx_gate
$(CONFORMANCE_GATE): $(B)/obj/libfrag/modules/ucx/preface.o
$(CONFORMANCE_GATE): $(B)/obj/tests/programs/conformance/uct_put.o
$(CONFORMANCE_GATE): private ALL_LDFLAGS += $(if $(UCX_SRC),-lcrypto -luct \
	$(shell $(PKG_CONFIG) --libs ucx))
$(CONFORMANCE_UCP): private ALL_LDFLAGS += $(if $(UCX_SRC),$(shell $(PKG_CONFIG) --libs ucx))

$(B)/tests/sample_plugins/lib%.so: tests/sample_plugins/%.c $(LIBFRAG_SO)
	@mkdir -p $(@D) $(B)/obj/tests/sample_plugins
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/sample_plugins/$*.d -MT $@ -shared \
		-Ilibfrag/include $< \
		$(ALL_LDFLAGS) -L$(B)/lib -lfrag -Wl,-rpath,'$$ORIGIN/../../lib' $(into_place)
# Preloaded into daemons: clocks that are kept differently, and a slow disk. Not instrumented, as
# fake_camera.so.
PRELOADED_SO := $(B)/tests/clock/shifted.so $(B)/tests/faults/slow_disk.so
$(PRELOADED_SO): $(B)/%.so: %.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -shared $< -ldl $(into_place)
tests: $(PRELOADED_SO)

# The same plugin with another layout of its struct, as on a node that was not updated.
$(B)/tests/sample_plugins/other/libtruth.so: tests/sample_plugins/truth.c $(LIBFRAG_SO)
	@mkdir -p $(@D) $(B)/obj/tests/sample_plugins
	$(CC) $(ALL_CFLAGS) -DOTHER_POSE -MF $(B)/obj/tests/sample_plugins/other.d -MT $@ -shared \
		-Ilibfrag/include $< $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		-Wl,-rpath,'$$ORIGIN/../../../lib' $(into_place)

TEST_BIN := $(UNIT_BIN) $(SHARED_TEST_BIN) $(CONFORMANCE_BIN)
.PHONY: tests unit check test check-here
tests: all $(TEST_PLUGIN_SO)
unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do echo $$t; $$t || exit 1; done

# Writes what tests compare with (tests/expected.h) anew: that of all programs, or of those whose
# path contains the word ONLY.
EXPECTED_BIN = $(patsubst tests/%.c,$(B)/tests/%,$(filter-out tests/unit/test_expected.c, \
	$(shell grep -lw expected_compare tests/*/test_*.c)))
.PHONY: expected
expected:
	@for t in $(if $(ONLY),$(foreach t,$(EXPECTED_BIN),$(if $(findstring $(ONLY),$(t)),$(t))), \
		$(EXPECTED_BIN)); do \
		$(MAKE) --no-print-directory -s $$t && FRAG_TEST_WRITE_EXPECTED=1 $$t || exit 1; \
	done
	@git status --short tests/data/expected

# Installs missing packages first; then make starts again, to find them. ONLY=word runs the test
# programs whose path contains the word.
check test:
	@mk/deps.sh
	@+$(BUILD_SH) tests
	@$(MAKE) --no-print-directory -s check-here
check-here:
ifeq ($(ONLY),)
	@echo "simulator: 4500 histories" >&2
	@$(call sim_histories,4500)
	@echo "tests of the queue, the pump and the ring under ThreadSanitizer" >&2
	@$(MAKE) --no-print-directory -s tsan-queues
endif
	@echo "all test programs; each prints a line when it ends" >&2
	@python3 tests/run.py --build $(B) $(if $(ONLY),--only $(ONLY),--record $(B)/tests/passed) \
		--again $(AGAIN)

# CUDA in a process that is confined as hosts are; for machines with a GPU, so libc is all it needs.
$(B)/tests/cuda_confined: tests/cuda/confined.c $(WORKERD_A) $(LIBFRAG_DAEMONS_A)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LIBFRAG_INC) -I. $^ $(ALL_LDFLAGS) \
		-Wl,-Bstatic -lseccomp -Wl,-Bdynamic -ldl -lm $(into_place)
