# SPDX-License-Identifier: Apache-2.0
# Built-in operators: plugins on public headers only, found in lib/frag/plugins. Each folder of libfrag/ops is one
# library; ops/NAME/libs.mk may set OPS_NAME_PKG to pkg-config names.
OPS := $(notdir $(patsubst %/,%,$(dir $(wildcard libfrag/ops/*/plugin.c))))
-include $(wildcard libfrag/ops/*/libs.mk)

$(B)/obj/libfrag/ops/%.o: libfrag/ops/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Ilibfrag/include $(if $(OPS_$(word 1,$(subst /, ,$*))_PKG),$(shell pkg-config --cflags $(OPS_$(word 1,$(subst /, ,$*))_PKG))) -c $< -o $@

define ops_library
$(B)/lib/frag/plugins/lib$(1).so: $$(patsubst %.c,$(B)/obj/%.o,$$(wildcard libfrag/ops/$(1)/*.c)) $$(LIBFRAG_SO)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(ALL_LDFLAGS) $$(filter %.o,$$^) -L$(B)/lib -lfrag $$(if $$(OPS_$(1)_PKG),$$(shell pkg-config --libs $$(OPS_$(1)_PKG))) -lm -Wl,-rpath,'$$$$ORIGIN/../..' -o $$@
all: $(B)/lib/frag/plugins/lib$(1).so
endef
$(foreach o,$(OPS),$(eval $(call ops_library,$(o))))
