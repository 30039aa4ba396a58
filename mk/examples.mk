# SPDX-License-Identifier: Apache-2.0
# Builds the examples as a user does: with their own Makefiles, against frag.pc (that of the build
# tree). Their libraries are put into lib/frag/extensions, where the programs of this tree find them
# by name. What uses a library with a sanitizer must have it too.
EXAMPLES := $(patsubst examples/%/Makefile,%,$(wildcard examples/*/Makefile))
EXAMPLES_OUT := $(abspath $(B)/lib/frag/extensions)

$(EXAMPLES:%=$(B)/obj/examples/%.done): $(B)/obj/examples/%.done: examples/%/Makefile \
	$(LIBFRAG_SO) $(B)/lib/pkgconfig/frag.pc
	@mkdir -p $(@D) $(EXAMPLES_OUT)
	PKG_CONFIG_SYSROOT_DIR= PKG_CONFIG_PATH=$(abspath $(B)/lib/pkgconfig) $(MAKE) \
		--no-print-directory -C examples/$* O=$(EXAMPLES_OUT) CC="$(CC) $(filter -fsanitize=%,$(EXTRA_LDFLAGS))"
	@touch $@
$(foreach e,$(EXAMPLES),$(eval $(B)/obj/examples/$(e).done: \
	$(wildcard examples/$(e)/*.c libfrag/include/frag/*.h)))
all: $(EXAMPLES:%=$(B)/obj/examples/%.done)
