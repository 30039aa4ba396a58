# SPDX-License-Identifier: Apache-2.0
# frag for Python: the package in $(B)/python, which programs of this tree use with
# PYTHONPATH=$(B)/python; `make python` builds a wheel (mk/wheel/wheel.py). The extension uses the
# stable ABI, so that one build serves CPython 3.11 and later. It is left out where the headers of
# Python are missing or older, and from builds with a sanitizer, which Python would need too.
PYTHON ?= python3
PYTHON_INC := $(shell $(PYTHON) -c "import sys, sysconfig; \
	print(sysconfig.get_paths()['include'] if sys.version_info >= (3, 11) else '')" 2>/dev/null)
PYTHON_SRC := $(wildcard python/src/*.c)
PYTHON_FILES := $(wildcard python/frag/*.py python/frag/*.pyi python/frag/py.typed \
	python/frag/holoscan/*.py python/frag/holoscan/*/*.py)
PYTHON_OUT := $(B)/python/frag
PYTHON_EXTENSION := $(PYTHON_OUT)/_frag.abi3.so
PYTHON_BUILT := $(PYTHON_EXTENSION) $(PYTHON_FILES:python/frag/%=$(PYTHON_OUT)/%)
$(PYTHON_SRC:%.c=$(B)/obj/%.o): $(B)/obj/python/%.o: python/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(PYTHON_CFLAGS) -isystem $(PYTHON_INC) -Ilibfrag/include -c $< -o $@
$(PYTHON_EXTENSION): $(PYTHON_SRC:%.c=$(B)/obj/%.o) $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,relro,-z,now -pthread $(EXTRA_LDFLAGS) $(filter %.o,$^) -L$(B)/lib \
		-lfrag $(call rpath,../../lib) $(into_place)
$(PYTHON_FILES:python/frag/%=$(PYTHON_OUT)/%): $(PYTHON_OUT)/%: python/frag/%
	@mkdir -p $(@D)
	@cp $< $@.new && mv -f $@.new $@
PYTHON_FOUND = $(if $(wildcard $(PYTHON_INC)/Python.h),$(if \
	$(findstring -fsanitize,$(EXTRA_CFLAGS))$(findstring aarch64,$(CC)),,$(PYTHON_BUILT)))
all: $(PYTHON_FOUND)
$(B)/tests/shared/test_python_recorded: | $(PYTHON_FOUND) \
	$(if $(PYTHON_FOUND),$(B)/tests/python/failing.so)
# The extension, of which tests/python/failing.py lets each call fail.
PYTHON_FAILING_OBJ := $(PYTHON_SRC:python/src/%.c=$(B)/obj/tests/python/%.o)
$(PYTHON_FAILING_OBJ): $(B)/obj/tests/python/%.o: python/src/%.c tests/python/failing_calls.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(PYTHON_CFLAGS) -include tests/python/failing_calls.h \
		-isystem $(PYTHON_INC) -Ilibfrag/include -c $< -o $@
$(B)/obj/tests/python/failing_calls.o: tests/python/failing_calls.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(PYTHON_CFLAGS) -isystem $(PYTHON_INC) -c $< -o $@
$(B)/tests/python/failing.so: $(PYTHON_FAILING_OBJ) $(B)/obj/tests/python/failing_calls.o \
		$(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) -shared -pthread $(EXTRA_LDFLAGS) $(filter %.o,$^) -L$(B)/lib -lfrag \
		$(call rpath,../../lib) $(into_place)

# For a package of Debian. The package of the wheel is installed by pip.
pythondir ?= /usr/lib/python3/dist-packages
.PHONY: install-python
install-python: $(PYTHON_BUILT)
	cd $(B)/python && find frag -type f ! -path '*/__pycache__/*' \
		-exec install -D -m 644 {} $(DESTDIR)$(pythondir)/{} \;

# The wheel has no asserts, as every package: it is built with NDEBUG=1.
WHEEL_PARTS := run shm cuda
WHEEL_PLUGINS := basic inference logger testing udp viewer vision
.PHONY: python python-here
python:
	@mk/deps.sh python
	@$(MAKE) --no-print-directory -s -j$$(nproc) B=$(B)-ndebug NDEBUG=1 python-here
python-here: $(PYTHON_BUILT) $(WHEEL_PARTS:%=$(B)/lib/frag/modules/%.so) \
		$(WHEEL_PLUGINS:%=$(B)/lib/frag/plugins/lib%.so)
	@$(PYTHON) mk/wheel/wheel.py $(B) $(VERSION) $(or $(DIST),dist)

# The same for aarch64 into dist/aarch64, cross-built, and imported under qemu-user.
.PHONY: python-aarch64
python-aarch64:
	@mk/deps.sh python && mk/deps.sh aarch64
	@tests/aarch64.sh --wheel

# The tests with ASan and UBSan, under the debug build of Debian's Python, which counts references
# only of extensions that were compiled for it: what was built before may be for another Python. Its
# headers are links to those of the other one, beside which the compiler would look.
.PHONY: python-debug python-debug-here
python-debug:
	@mk/deps.sh nightly
	@rm -rf build-asan/python build-asan/obj/python
	@$(ASAN_MAKE) PYTHON=python3-dbg PYTHON_CFLAGS=-fno-canonical-system-headers \
		python-debug-here
	@tests/python/debug.sh build-asan
python-debug-here: $(PYTHON_BUILT) $(WHEEL_PARTS:%=$(B)/lib/frag/modules/%.so) \
		$(WHEEL_PLUGINS:%=$(B)/lib/frag/plugins/lib%.so)

# Holoscan's own tests on frag.holoscan: SDK is a checkout of nvidia-holoscan/holoscan-sdk. With
# WHEEL, a virtual environment that has Holoscan's wheel, it is measured by what the wheel passes.
.PHONY: holoscan-suite
holoscan-suite: all
	@python3 tests/holoscan/suite.py --sdk '$(or $(SDK),$(error SDK=FOLDER names a checkout of \
		Holoscan))' --build $(B) --python $(PYTHON) $(if $(WHEEL),--wheel '$(WHEEL)') \
		$(if $(ONLY),--only '$(ONLY)') $(SUITE_FLAGS)
