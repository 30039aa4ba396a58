# SPDX-License-Identifier: Apache-2.0
# What a build needs. Where any of it is missing, make reports that with the command that installs
# it, and builds nothing. Other targets install what they need themselves (mk/deps.sh).
# make WITHOUT="ucx crypto video viewer web" builds as on a machine without their packages. Without
# UCX a flow cannot leave its process; without crypto no sha256 of a library is checked; without
# video or viewer everything but their operators works; without web all but fragctl web.
BUILDING := $(filter all tests unit install install-here,$(or $(MAKECMDGOALS),all))

# Each folder of libfrag/ops is a library; ops/NAME/libs.mk may set OPS_NAME_PKG to names of
# pkg-config.
OPS_ALL := $(notdir $(patsubst %/,%,$(dir $(wildcard libfrag/ops/*/plugin.c))))
-include $(wildcard libfrag/ops/*/libs.mk)
NEEDED_COMMANDS := $(firstword $(CC)) $(PKG_CONFIG) protoc-c
NEEDED_PACKAGES := yaml-0.1 libuv libprotobuf-c libssl libseccomp sqlite3 ncursesw \
	$(filter-out $(WITHOUT),ucx) $(if $(filter-out $(WITHOUT),web),libmicrohttpd) \
	$(if $(filter-out $(WITHOUT),ucx crypto),libcrypto) \
	$(foreach o,$(filter-out $(WITHOUT),$(OPS_ALL)),$(OPS_$(o)_PKG))

ifneq ($(BUILDING),)
MISSING := $(shell for c in $(NEEDED_COMMANDS); do command -v $$c >/dev/null || echo $$c; done; \
	$(PKG_CONFIG) --exists $(NEEDED_PACKAGES) 2>/dev/null || for p in $(NEEDED_PACKAGES); do \
	$(PKG_CONFIG) --exists $$p 2>/dev/null || echo $$p; done)
$(if $(MISSING),$(error frag cannot be built yet, because this is missing: $(strip $(MISSING)). \
	Run "make deps", which installs it, then this again))
$(foreach m,$(filter ucx crypto,$(WITHOUT)),$(info $(m).so is not built: WITHOUT names it))
$(if $(filter web,$(WITHOUT)),$(info http.so is not built: WITHOUT names web))
$(foreach o,$(filter $(OPS_ALL),$(WITHOUT)),$(info lib$(o).so is not built: WITHOUT names it))
endif
