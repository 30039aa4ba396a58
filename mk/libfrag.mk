# SPDX-License-Identifier: Apache-2.0
# libfrag.so, the static archive that the daemons and the unit tests link, and the modules it opens
# when needed.
LIBFRAG_INC := -Ilibfrag/include -Ilibfrag/src
LIBFRAG_SRC := $(wildcard libfrag/src/*/*.c libfrag/src/edge/remote/*.c)
LIBFRAG_OBJ := $(LIBFRAG_SRC:%.c=$(B)/obj/%.o)
LIBFRAG_SO := $(B)/lib/libfrag.so.1
LIBFRAG_A := $(B)/obj/libfrag.a
# What the daemons link: with nothing else in it, a call of what opens shared objects does not link.
LIBFRAG_DAEMONS_A := $(B)/obj/libfrag-daemons.a
LIBFRAG_DAEMONS_SRC := $(wildcard $(addprefix libfrag/src/,base/*.c text/*.c track/*.c \
	graph/interface.c graph/predict.c graph/resolve.c graph/resolve_end.c graph/transport.c \
	edge/ledger.c))
UCX_SRC := $(if $(filter ucx,$(WITHOUT)),,$(wildcard libfrag/modules/ucx/*.c))
# Each folder of libfrag/modules is a module; MODULE_NAME_PKG names the package that it needs.
MODULE_ucx_PKG := ucx libcrypto
MODULE_crypto_PKG := libcrypto
MODULES := $(filter-out $(WITHOUT),$(notdir $(wildcard libfrag/modules/*)))
MODULE_SO := $(MODULES:%=$(B)/lib/frag/modules/%.so)

$(B)/obj/libfrag/%.o: libfrag/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFRAG_INC) -c $< -o $@

$(LIBFRAG_SO): $(LIBFRAG_OBJ) libfrag/libfrag.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,libfrag.so.1 \
		-Wl,--version-script=libfrag/libfrag.map \
		-Wl,-Bsymbolic-functions $(LIBFRAG_OBJ) -lyaml -ldl $(into_place)
	ln -sf libfrag.so.1 $(B)/lib/libfrag.so

$(LIBFRAG_A): $(LIBFRAG_OBJ)
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $^

$(LIBFRAG_DAEMONS_A): $(LIBFRAG_DAEMONS_SRC:%.c=$(B)/obj/%.o)
	rm -f $@ && $(AR) rcs $@ $^

define module
$(if $(MODULE_$(1)_PKG),$(B)/obj/libfrag/modules/$(1)/%.o: ALL_CFLAGS += \
	$$(shell $$(PKG_CONFIG) --cflags $(MODULE_$(1)_PKG)))
$(B)/lib/frag/modules/$(1).so: $$(patsubst %.c,$(B)/obj/%.o,$$(wildcard libfrag/modules/$(1)/*.c)) \
		$$(LIBFRAG_SO)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(ALL_LDFLAGS) $$(filter %.o,$$^) -L$(B)/lib -lfrag \
		$$(if $$(MODULE_$(1)_PKG),$$(shell $$(PKG_CONFIG) --libs $$(MODULE_$(1)_PKG))) \
		$$(call rpath,../..) $$(into_place)
endef
$(foreach m,$(MODULES),$(eval $(call module,$(m))))

all: $(LIBFRAG_SO) $(LIBFRAG_A) $(MODULE_SO)
