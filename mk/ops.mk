# SPDX-License-Identifier: Apache-2.0
# Built-in operators: plugins on public headers only, found in lib/frag/plugins. Each folder of
# libfrag/ops is one library; ops/NAME/libs.mk may set OPS_NAME_PKG to pkg-config names.
OPS_ALL := $(notdir $(patsubst %/,%,$(dir $(wildcard libfrag/ops/*/plugin.c))))
-include $(wildcard libfrag/ops/*/libs.mk)
# A library whose packages are missing is left out: without FFmpeg everything but video works.
OPS := $(foreach o,$(filter-out $(WITHOUT),$(OPS_ALL)),\
	$(if $(OPS_$(o)_PKG),$(shell pkg-config --exists $(OPS_$(o)_PKG) \
	2>/dev/null && echo $(o)),$(o)))
$(if $(SAYS_MISSING),$(foreach o,$(filter-out $(OPS),$(OPS_ALL)),$(info lib$(o).so is not built: \
	$(if $(filter $(o),$(WITHOUT)),WITHOUT names it,pkg-config does not find \
	$(OPS_$(o)_PKG); make deps installs it))))
OPS_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(OPS:%=libfrag/ops/%/*.c)))
OPS_PKG := $(foreach o,$(OPS),$(OPS_$(o)_PKG))

$(B)/obj/libfrag/ops/%.o: libfrag/ops/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Ilibfrag/include $(if $(OPS_$(word 1,$(subst /, ,$*))_PKG),\
		$(shell pkg-config --cflags $(OPS_$(word 1,$(subst /, ,$*))_PKG))) -c $< -o $@

define ops_library
$(B)/lib/frag/plugins/lib$(1).so: $$(patsubst %.c,$(B)/obj/%.o,$$(wildcard libfrag/ops/$(1)/*.c)) \
	$$(LIBFRAG_SO)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(ALL_LDFLAGS) $$(filter %.o,$$^) -L$(B)/lib -lfrag \
		$$(if $$(OPS_$(1)_PKG),$$(shell pkg-config --libs $$(OPS_$(1)_PKG))) -lm \
		-Wl,-rpath,'$$$$ORIGIN/../..' -o $$@
all: $(B)/lib/frag/plugins/lib$(1).so
endef
$(foreach o,$(OPS),$(eval $(call ops_library,$(o))))

# The tests of the operators link their objects; without FFmpeg those of video are left out.
OPS_TEST_SRC := $(filter-out \
	$(if $(filter video,$(OPS)),,tests/operators/test_video%.c),$(wildcard tests/operators/*.c))
OPS_TEST_BIN := $(OPS_TEST_SRC:tests/%.c=$(B)/tests/%)
$(OPS_TEST_BIN): $(B)/tests/operators/%: tests/operators/%.c $(OPS_OBJ) $(LIBFRAG_SO) | \
	$(CRITERION_OBJ)
	@mkdir -p $(@D) $(B)/obj/tests/operators
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/operators/$*.d -Itests -Ilibfrag/include \
		-Ilibfrag/ops $< $(OPS_OBJ) $(ALL_LDFLAGS) -L$(B)/lib -lfrag $(CRITERION) \
		$(shell pkg-config --libs $(OPS_PKG)) -lm -Wl,-rpath,'$$ORIGIN/../../lib' -o $@
tests: $(OPS_TEST_BIN)

# Programs that write and check clips of known content, without libfrag.
VIDEO_TEST_BIN := $(patsubst tests/video/%.c,$(B)/tests/video/%,$(wildcard tests/video/*.c))
$(VIDEO_TEST_BIN): $(B)/tests/video/%: tests/video/%.c
	@mkdir -p $(@D) $(B)/obj/tests/video
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/video/$*.d $< $(ALL_LDFLAGS) -lm -o $@
tests: $(VIDEO_TEST_BIN)
