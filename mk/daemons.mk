# SPDX-License-Identifier: Apache-2.0
# driverd and workerd link the few folders of libfrag that they need, statically. fraghost and
# fragctl share libfrag.so with plugins. A runner is a driver, a worker and a host in one process:
# fragctl, and the module that libfrag opens for frag/run.h, link what they need of all three.
DRIVERD_SRC := $(wildcard driverd/*.c driverd/core/*.c driverd/core/*/*.c)
WORKERD_SRC := $(wildcard workerd/*.c workerd/core/*.c)
HOST_CORE_SRC := $(wildcard workerd/host/core/*.c)
FRAGHOST_SRC := $(wildcard workerd/host/*.c) $(HOST_CORE_SRC)
FRAGCTL_SRC := $(wildcard fragctl/*.c fragctl/web/*.c)
RUNNER_SRC := $(wildcard runner/*.c)
RUNNER_OBJ = $(RUNNER_SRC:%.c=$(B)/obj/%.o) \
	$(patsubst %.c,$(B)/obj/%.o,$(filter-out %/main.c,$(FRAGHOST_SRC)))
WORKERD_A := $(B)/obj/workerd.a
DRIVERD_A := $(B)/obj/driverd.a
# driverd and workerd never load user code.
no_dlopen = @! nm -u $@ | grep -w dlopen || { echo "$@ opens shared objects" >&2; exit 1; }
DAEMON_INC = -I. $(WIRE_INC)
UV_LIBS = -luv
PROTOBUF_LIBS = -lprotobuf-c
SECCOMP_LIBS = -lseccomp
SQLITE_LIBS = -lsqlite3
# fragctl run is to start fast: each shared library costs a tenth of a millisecond.
archive = $(or $(wildcard $(shell $(PKG_CONFIG) --variable=libdir $(1))/$(2).a),$(3))
FRAGCTL_LIBS = $(call archive,libuv,libuv_a,$(UV_LIBS)) \
	$(call archive,libprotobuf-c,libprotobuf-c,$(PROTOBUF_LIBS)) \
	$(call archive,ncursesw,libncursesw,-lncursesw) $(call archive,tinfo,libtinfo,-ltinfo)

# What UCX calls in the executable (workerd/host/ucx_fatal.c).
HOST_EXPORTS = -Wl,--export-dynamic-symbol=ucs_fatal_error_message

$(foreach f,driverd workerd runner fragctl,$(B)/obj/$(f)/%.o): ALL_CFLAGS += $(DAEMON_INC)
$(B)/obj/driverd/%.o: driverd/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@
$(B)/obj/workerd/%.o: workerd/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@
$(B)/obj/runner/%.o: runner/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@
$(B)/obj/fragctl/%.o: fragctl/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

ifneq ($(DRIVERD_SRC),)
$(B)/bin/driverd: $(DRIVERD_SRC:%.c=$(B)/obj/%.o) $(WIRE_A) $(LIBFRAG_DAEMONS_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ -lyaml $(UV_LIBS) $(PROTOBUF_LIBS) $(TLS_LIBS) $(SQLITE_LIBS) \
		-lm $(into_place)
	$(no_dlopen)
all: $(B)/bin/driverd
endif
# All but main, for the tests; and fraghost's core.
$(WORKERD_A): $(patsubst %.c,$(B)/obj/%.o, \
		$(filter-out workerd/main.c,$(WORKERD_SRC)) $(HOST_CORE_SRC))
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $^
$(DRIVERD_A): $(patsubst %.c,$(B)/obj/%.o,$(filter-out driverd/main.c,$(DRIVERD_SRC)))
	rm -f $@ && $(AR) rcs $@ $^

ifneq ($(wildcard workerd/main.c),)
$(B)/bin/workerd: $(WORKERD_SRC:%.c=$(B)/obj/%.o) $(WIRE_A) $(LIBFRAG_DAEMONS_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ -lyaml $(UV_LIBS) $(PROTOBUF_LIBS) $(TLS_LIBS) $(SECCOMP_LIBS) \
		-lm $(into_place)
	$(no_dlopen)
all: $(B)/bin/workerd
endif
ifneq ($(wildcard libfrag/src/run/run.c),)
$(B)/libexec/frag/fraghost: $(FRAGHOST_SRC:%.c=$(B)/obj/%.o) $(WIRE_A) $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(filter-out %.so.1,$^) -L$(B)/lib -lfrag $(PROTOBUF_LIBS) \
		$(HOST_EXPORTS) $(call rpath,../../lib) $(into_place)
all: $(B)/libexec/frag/fraghost
endif
$(B)/obj/fragctl/new.o: $(wildcard fragctl/template/*)
$(B)/obj/fragctl/schema.o: docs/graph.schema.json
$(B)/obj/fragctl/web/routes.o: $(wildcard fragctl/web/page/*)
ifneq ($(FRAGCTL_SRC),)
$(B)/bin/fragctl: $(FRAGCTL_SRC:%.c=$(B)/obj/%.o) $(filter-out %/module.o,$(RUNNER_OBJ)) \
		$(DRIVERD_A) $(WORKERD_A) $(WIRE_A) $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(filter-out %.so.1,$^) -L$(B)/lib -lfrag $(FRAGCTL_LIBS) \
		$(HOST_EXPORTS) $(call rpath,../lib) $(into_place)
all: $(B)/bin/fragctl
endif
# What frag/run.h opens. Its symbols stay its own: a program may use another libuv.
RUN_MODULE := $(B)/lib/frag/modules/run.so
$(RUN_MODULE): $(RUNNER_OBJ) $(DRIVERD_A) $(WORKERD_A) $(WIRE_A) $(LIBFRAG_SO) runner/module.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=runner/module.map \
		$(filter %.o %.a,$^) -L$(B)/lib -lfrag $(UV_LIBS) \
		$(PROTOBUF_LIBS) $(call rpath,../..) $(into_place)
all: $(RUN_MODULE)
# What fragctl opens for --key-file.
TLS_MODULE := $(B)/lib/frag/modules/tls.so
$(B)/obj/fragctl/tls/%.o: ALL_CFLAGS += $(DAEMON_INC)
$(TLS_MODULE): $(B)/obj/fragctl/tls/module.o $(WIRE_A) $(LIBFRAG_SO) fragctl/tls/module.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=fragctl/tls/module.map \
		$(filter %.o %.a,$^) -L$(B)/lib -lfrag $(UV_LIBS) $(PROTOBUF_LIBS) $(TLS_LIBS) \
		$(call rpath,../..) $(into_place)
all: $(TLS_MODULE)
# What fragctl opens for the page in the browser.
ifeq ($(filter web,$(WITHOUT)),)
HTTP_MODULE := $(B)/lib/frag/modules/http.so
$(B)/obj/fragctl/http/%.o: ALL_CFLAGS += $(shell $(PKG_CONFIG) --cflags libmicrohttpd)
$(HTTP_MODULE): $(B)/obj/fragctl/http/module.o $(LIBFRAG_SO) fragctl/http/module.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=fragctl/http/module.map \
		$(filter %.o,$^) -L$(B)/lib -lfrag $(shell $(PKG_CONFIG) --libs libmicrohttpd) \
		$(call rpath,../..) $(into_place)
all: $(HTTP_MODULE)
endif
