# SPDX-License-Identifier: Apache-2.0
"""holoscan.graphs"""
from ._graph import FragmentFlowGraph, FragmentGraph, OperatorFlowGraph, OperatorGraph

FlowGraph = OperatorFlowGraph

__all__ = ["FlowGraph", "FragmentFlowGraph", "FragmentGraph", "OperatorFlowGraph",
           "OperatorGraph"]
