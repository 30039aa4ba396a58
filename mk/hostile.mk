# SPDX-License-Identifier: Apache-2.0
# make hostile [ATTACK=s] [ONLY=word]: attacks on real daemons (tests/hostile). ATTACK: how many
# seconds an attack goes on that has no end of its own; default 3 (make check: 1).
.PHONY: hostile
hostile: tests
	@FRAG_TEST_ATTACK_S=$(or $(ATTACK),3) python3 tests/run.py --build $(B) \
		--only hostile/$(ONLY) --again $(AGAIN)
