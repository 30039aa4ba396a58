# SPDX-License-Identifier: Apache-2.0
# Built-in operators: plugins on public headers only, found in lib/frag/plugins. mk/needs.mk lists
# the libraries and their packages; ops/NAME/libs.mk may set OPS_NAME_LDFLAGS, and OPS_NAME_USES to
# folders without a plugin of their own, whose objects the library holds too.
OPS := $(filter-out $(WITHOUT),$(OPS_ALL))
OPS_USED := $(sort $(foreach o,$(OPS),$(OPS_$(o)_USES)))
OPS_OBJ := $(patsubst %.c,$(B)/obj/%.o, \
	$(wildcard $(patsubst %,libfrag/ops/%/*.c,$(OPS) $(OPS_USED))))
OPS_PKG := $(foreach o,$(OPS),$(OPS_$(o)_PKG))

# With -O2 alone, gcc makes vector code only of loops whose length it knows.
OPS_VECTORS := $(if $(findstring clang,$(CC)),,-fvect-cost-model=dynamic)
$(B)/obj/libfrag/ops/%.o: libfrag/ops/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(OPS_VECTORS) -Ilibfrag/include \
		$(if $(OPS_$(word 1,$(subst /, ,$*))_PKG),\
		$(shell $(PKG_CONFIG) --cflags $(OPS_$(word 1,$(subst /, ,$*))_PKG))) -c $< -o $@

define ops_library
$(B)/lib/frag/plugins/lib$(1).so: $$(patsubst %.c,$(B)/obj/%.o,\
		$$(wildcard $$(patsubst %,libfrag/ops/%/*.c,$(1) $$(OPS_$(1)_USES)))) \
	$$(LIBFRAG_SO)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(ALL_LDFLAGS) $$(OPS_$(1)_LDFLAGS) $$(filter %.o,$$^) -L$(B)/lib -lfrag \
		$$(if $$(OPS_$(1)_PKG),$$(shell $(PKG_CONFIG) --libs $$(OPS_$(1)_PKG))) -lm \
		$$(call rpath,../..) $$(into_place)
all: $(B)/lib/frag/plugins/lib$(1).so
endef
$(foreach o,$(OPS),$(eval $(call ops_library,$(o))))

$(B)/obj/libfrag/ops/viewer/page.o: libfrag/ops/viewer/page.html

# The tests of the operators link their objects; without FFmpeg those of video are left out.
OPS_TEST_SRC := $(filter-out \
	$(foreach o,$(filter $(WITHOUT),$(OPS_ALL)),\
		$(wildcard tests/operators/test_$(o).c tests/operators/test_$(o)_*.c)), \
	$(wildcard tests/operators/*.c))
OPS_TEST_BIN := $(OPS_TEST_SRC:tests/%.c=$(B)/tests/%)
$(OPS_TEST_BIN): $(B)/tests/operators/%: tests/operators/%.c $(OPS_OBJ) $(LIBFRAG_SO) \
	$(CRITERION)
	@mkdir -p $(@D) $(B)/obj/tests/operators
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/operators/$*.d -MT $@ -Itests -Ilibfrag/include \
		-Ilibfrag/ops $< $(filter %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		$(shell $(PKG_CONFIG) --libs $(OPS_PKG)) -lm $(call rpath,../../lib) $(into_place)
TEST_BIN += $(OPS_TEST_BIN)

# A camera that is not there: linked into the test of the operator, and preloaded into hosts. It is
# not instrumented, because it intercepts calls before the sanitizers do.
FAKE_CAMERA_SO := $(if $(filter capture,$(OPS)),$(B)/tests/camera/fake_camera.so)
$(B)/obj/tests/camera/fake_camera.o: tests/camera/fake_camera.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -MMD -MP -c $< -o $@
$(B)/tests/camera/fake_camera.so: $(B)/obj/tests/camera/fake_camera.o
	@mkdir -p $(@D)
	$(CC) -shared $< -Wl,-z,defs $(shell $(PKG_CONFIG) --libs libturbojpeg) -ldl $(into_place)
$(B)/tests/operators/test_capture: $(B)/obj/tests/camera/fake_camera.o
tests: $(FAKE_CAMERA_SO)
# A desktop that is not there: SDL2 by its name. In the test that uses it calloc fails on demand.
FAKE_SDL := $(if $(filter window,$(OPS)),$(B)/tests/window/libSDL2-2.0.so.0)
$(B)/tests/window/libSDL2-2.0.so.0: tests/window/fake_sdl.c
	@mkdir -p $(@D) $(B)/obj/tests/window
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/window/fake_sdl.d -MT $@ -Ilibfrag/include \
		-Ilibfrag/ops \
		-shared $< $(ALL_LDFLAGS) -Wl,-soname,$(@F) $(into_place)
$(B)/tests/operators/test_window_display: private ALL_LDFLAGS += -Wl,--wrap=calloc
$(B)/tests/operators/test_window_display: | $(FAKE_SDL)
tests: $(FAKE_SDL)
# Memory of operators is short on demand.
$(addprefix $(B)/tests/operators/test_,recorded recorded_gpu inference_recorded video_recorded): \
	private ALL_LDFLAGS += -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=strdup -Wl,--wrap=free
# It runs the programs.
$(B)/tests/shared/test_commands: | $(B)/bin/fragctl $(B)/libexec/frag/fraghost \
	$(OPS:%=$(B)/lib/frag/plugins/lib%.so)
# They know its types.
$(B)/tests/unit/test_ctl_run $(B)/tests/unit/test_views: | $(B)/lib/frag/plugins/libbasic.so
# vivid: the same operator with the kernel's virtual camera, in qemu; skipped where that is missing.
.PHONY: vivid
vivid:
	@mk/deps.sh vivid || true
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@python3 tests/camera/vivid.py --build $(B)

# Programs that write and check clips of known content, without libfrag.
VIDEO_TEST_BIN := $(patsubst tests/video/%.c,$(B)/tests/video/%,$(wildcard tests/video/*.c))
$(VIDEO_TEST_BIN): $(B)/tests/video/%: tests/video/%.c
	@mkdir -p $(@D) $(B)/obj/tests/video
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/video/$*.d -MT $@ $< $(ALL_LDFLAGS) -lm $(into_place)
tests: $(VIDEO_TEST_BIN)
