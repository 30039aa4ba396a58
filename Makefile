# SPDX-License-Identifier: Apache-2.0
# The build tree has the folders of the installed one (build/bin, build/lib, build/libexec/frag,
# build/lib/frag/{modules,plugins}), so programs find their parts relative to themselves in both.
# make builds with asserts. make NDEBUG=1 builds what packages hold, without them, in a build tree
# of its own; make install does so too (mk/install.mk).
B ?= build$(if $(NDEBUG),-ndebug)
VERSION := 0.1.0
ifeq ($(origin CC),default)
CC := gcc
endif
WERROR ?= -Werror
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wformat=2 -Wvla -Wimplicit-fallthrough -Wpointer-arith -Wwrite-strings \
	-Wno-missing-field-initializers $(WERROR)
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fno-common -fvisibility=hidden \
	-fno-omit-frame-pointer -fstack-protector-strong -pthread -MMD -MP \
	-DFRAG_VERSION='"$(VERSION)"' $(if $(NDEBUG),-DNDEBUG) $(EXTRA_CFLAGS)
ALL_LDFLAGS = -Wl,-z,defs,-z,relro,-z,now -pthread $(EXTRA_LDFLAGS)

.DELETE_ON_ERROR:
.PHONY: all
all:

include mk/needs.mk
include mk/libfrag.mk
include mk/wire.mk
include mk/daemons.mk
include mk/tests.mk
include mk/ops.mk
include mk/examples.mk
include mk/bench.mk
include mk/sim.mk
include mk/torture.mk
include mk/faults.mk
include mk/demo.mk
include mk/install.mk
include mk/lint.mk
include mk/fuzz.mk
include mk/proof.mk
include mk/mutate.mk

.PHONY: deps clean
deps:
	@mk/deps.sh

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
