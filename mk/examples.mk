# SPDX-License-Identifier: Apache-2.0
# Builds the examples as a user does: with their own Makefiles, against frag.pc (that of the build
# tree). Their libraries are put into lib/frag/extensions, where the programs of this tree find them
# by name. What uses a library with a sanitizer must have it too.
# The example cuda is left out where there is no nvcc, which mk/cuda.mk says.
EXAMPLES := $(filter-out $(if $(NVCC),,cuda), \
	$(patsubst examples/%/Makefile,%,$(wildcard examples/*/Makefile)))
EXAMPLES_OUT := $(abspath $(B)/lib/frag/extensions)

$(EXAMPLES:%=$(B)/obj/examples/%.done): $(B)/obj/examples/%.done: examples/%/Makefile \
	$(LIBFRAG_SO) $(B)/lib/pkgconfig/frag.pc
	@mkdir -p $(@D) $(EXAMPLES_OUT)
	PKG_CONFIG_SYSROOT_DIR= PKG_CONFIG_PATH=$(abspath $(B)/lib/pkgconfig) $(MAKE) \
		--no-print-directory -C examples/$* O=$(EXAMPLES_OUT) CUDA_HOME=$(NVCC:%/bin/nvcc=%) \
		CC="$(CC) $(filter -fsanitize=%,$(EXTRA_LDFLAGS))"
	@touch $@
$(foreach e,$(EXAMPLES),$(eval $(B)/obj/examples/$(e).done: \
	$(wildcard $(addprefix examples/$(e)/,*.c *.cu *.h) libfrag/include/frag/*.h)))
all: $(EXAMPLES:%=$(B)/obj/examples/%.done)
