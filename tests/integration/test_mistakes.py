# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make when they type a graph: each gives one error, at its place."""
import cluster

GRAPH = """\
frag: 1
application: app
arguments:
  source: {default: replayer, choices: [replayer, aja], help: where frames come from}
config:
  tensor: {rows: 4, columns: 4}
fragments:
  f1:
    resources:
      pool: {type: block_memory_pool, storage_type: 2, block_size: 2MB, num_blocks: 8}
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {from_config: tensor, allocator: $pool}
        conditions: [{type: count, count: 3}, {type: periodic, recess_period: 30hz}]
      mid: {type: forward}
    flows:
      - tx.out -> mid.in
    scheduler: {type: event_based, worker_thread_number: 2}
    requirements: {cpu: 2, memory: 512Mi}
    watchdog: 2s
  f2:
    operators:
      rx: {type: ping_tensor_rx}
flows:
  - f1.mid.out -> f2.rx.in
"""

# What is typed instead of what, and the error: line, column, sentence.
MISTAKES = (
    ("[{type: count, count: 3}, {type: periodic, recess_period: 30hz}]",
     "[{type: count, count: 3}, {type: periodic, recess_period: 30hz}",
     '15:21: this "[" is not closed; add "]"'),
    ("mid: {type: forward}",
     "mid: {type: forward",
     '16:12: this "{" is not closed; add "}"'),
    ("num_blocks: 8}",
     "num_blocks: 8",
     '10:13: this "{" is not closed; add "}"'),
    ("help: where frames come from",
     'help: "where frames come from',
     '4:63: this quote (") is not closed; add one at the end of the text'),
    ("help: where frames come from",
     "help: 'where frames come from",
     "4:63: this quote (') is not closed; add one at the end of the text"),
    ("mid: {type: forward}",
     "mid: {type: forward}]",
     '16:27: "]" closes nothing; remove it, or add the "[" that it is to close'),
    ("mid: {type: forward}",
     "mid: {type: forward}}",
     '16:27: "}" closes nothing; remove it, or add the "{" that it is to close'),
    ("[{type: count, count: 3},",
     "[{type: count, count: 3],",
     '15:44: "]" closes the "{" of line 15, column 22; write "}"'),
    ("{type: count, count: 3}",
     "{type: count count: 3}",
     '15:40: inside the "{" of line 15, column 22 a comma is missing, or quotes around a text that holds a colon or a bracket'),
    ("mid: {type: forward}",
     "mid: {type:forward}",
     '16:13: f1.mid: "type:forward" lacks a space after the colon; write "type: forward"'),
    ("        type: ping_tensor_tx",
     "        type:ping_tensor_tx",
     "14:19: no key can stand here; indent it as the keys around it, and write a space after the colon in the line before"),
    ("    watchdog: 2s",
     "    watchdog:2s",
     '21:5: "watchdog:2s" is no key with a value; write a colon and a space after the key'),
    ("        type: ping_tensor_tx",
     "	type: ping_tensor_tx",
     "13:1: a tab; indent with spaces, since YAML allows no tabs there"),
    ("        parameters: {from",
     "       parameters: {from",
     "14:8: this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column"),
    ("        parameters: {from",
     "         parameters: {from",
     "14:20: no key can stand here; indent it as the keys around it, and write a space after the colon in the line before"),
    ("      mid: {type",
     "    mid: {type",
     '16:5: f1: "mid" stands beside operators; if it is one, indent it as the others'),
    ("    operators:\n      tx",
     "    operators\n      tx",
     '11:5: "operators" is no key with a value; write a colon and a space after the key'),
    ("      - tx.out -> mid.in",
     "      tx.out -> mid.in",
     "18:7: f1: flows is a single value; it must be a list ([a, b])"),
    ("      - tx.out -> mid.in",
     "      -tx.out -> mid.in",
     "18:7: f1: flows is a single value; it must be a list ([a, b])"),
    ("tx.out -> mid.in",
     "tx.out - mid.in",
     '18:9: f1: "tx.out - mid.in" is not a valid flow; write `A.OUT -> B.IN`, or {from: A.OUT, to: [B.IN, C.IN]}'),
    ("tx.out -> mid.in",
     "tx.out => mid.in",
     '18:9: f1: "tx.out => mid.in" is not a valid flow; write `A.OUT -> B.IN`, or {from: A.OUT, to: [B.IN, C.IN]}'),
    ("tx.out -> mid.in",
     "tx.ouput -> mid.in",
     '18:9: flow end f1.tx.ouput: no output "ouput"; its outputs: out'),
    ("tx.out -> mid.in",
     "tx.out -> mit.in",
     '18:9: flow end mit.in: unknown operator "f1.mit"; did you mean "mid"?'),
    ("f1.mid.out -> f2",
     "f1.mid.out -> f3",
     '26:5: flow end f3.rx.in: unknown fragment "f3"; fragments: f1, f2'),
    ("type: forward",
     "type: foward",
     '16:7: f1.mid: unknown operator type "foward"; did you mean "forward"?'),
    ("type: periodic",
     "type: PeriodicConditon",
     '15:47: f1.tx: unknown condition type "PeriodicConditon"; did you mean "PeriodicCondition"?'),
    ("recess_period: 30hz",
     "reces_period: 30hz",
     '15:64: f1.tx: condition periodic: unknown parameter "reces_period"; did you mean "recess_period"?'),
    ("allocator: $pool",
     "allocator: $pol",
     '14:54: f1.tx: parameter "allocator": there is no resource "pol"; did you mean "pool"?'),
    ("allocator: $pool",
     "allocator: pool",
     '14:54: f1.tx: parameter "allocator": "pool" is not a valid reference to a resource; write $NAME'),
    ("allocator: $pool",
     "allocator: ${pool}",
     '14:55: a reference to an argument needs quotes inside [] and {}; write "${NAME}"'),
    ("allocator: $pool",
     "tensor_name: $win",
     '14:56: f1.tx: parameter "tensor_name": $win names nothing; write "${win}" for an argument, or quotes around a text that begins with $'),
    ("allocator: $pool",
     "batch_size: $win",
     '14:55: f1.tx: parameter "batch_size": $win names nothing; write "${win}" for an argument, or quotes around a text that begins with $'),
    ("from_config: tensor",
     "from_config: tenso",
     '14:35: f1.tx: from_config: config has no "tenso"; did you mean "tensor"?'),
    ("recess_period: 30hz",
     "recess_period: {from_config: missing}",
     '15:93: f1.tx: from_config: config has no "missing"; its keys: tensor'),
    ("recess_period: 30hz",
     "recess_period: {from_config: [missing]}",
     '15:94: f1.tx: from_config: config has no "missing"; its keys: tensor'),
    ("recess_period: 30hz",
     "recess_period: {from_config: ['x_${source}']}",
     "15:93: f1.tx: from_config: config has none of these"),
    ("recess_period: 30hz",
     "recess_period: {from_config: tensor, a: 1}",
     "15:79: f1.tx: recess_period: from_config stands alone in a value; put the other keys into config"),
    ("recess_period: 30hz",
     "recess_period: '${hz}'",
     '15:79: unknown argument "hz"; declared: source'),
    ("recess_period: 30hz",
     "recess_period: ${hz}hz",
     '15:80: a reference to an argument needs quotes inside [] and {}; write "${NAME}"'),
    ("count: 3}",
     "count: three}",
     '15:43: f1.tx: condition count: parameter "count": "three" is not a valid integer; write a whole number such as 3'),
    ("watchdog: 2s",
     "watchdog: 2",
     '21:15: f1: watchdog "2" has no unit; write for example 2s'),
    ("watchdog: 2s",
     "watchdog: 2sec",
     '21:15: f1: watchdog "2sec" is not a valid duration; write for example 10ms, 2s or 30hz'),
    ("recess_period: 30hz",
     "recess_period: 30 fps",
     '15:79: f1.tx: condition periodic: parameter "recess_period": "30 fps" is not a valid duration; write nanoseconds, or a number with a unit such as 10ms, 2s or 30hz'),
    ("  f2:\n",
     "  f1:\n",
     '22:3: the key "f1" is given twice in one map; remove one'),
    ("      mid: {type: forward}",
     "      tx: {type: forward}",
     '16:7: the key "tx" is given twice in one map; remove one'),
    ("    resources:\n",
     "    resources:\n      pool: {type: unbounded_allocator}\n",
     '11:7: the key "pool" is given twice in one map; remove one'),
    ("    watchdog: 2s",
     "    operators: {x: {type: forward}}",
     '21:5: the key "operators" is given twice in one map; remove one'),
    ("    watchdog: 2s",
     "    wachdog: 2s",
     '21:5: f1: unknown key "wachdog"; did you mean "watchdog"?'),
    ("flows:\n  - f1",
     "flow:\n  - f1",
     '25:1: unknown key "flow"; did you mean "flows"?'),
    ("memory: 512Mi",
     "memry: 512Mi",
     '20:28: f1.requirements: unknown key "memry"; did you mean "memory"?'),
    ("memory: 512Mi",
     "memory: 512Megs",
     '20:36: f1.requirements: memory "512Megs" is not a valid size; write for example 512Mi or 2GB'),
    ("storage_type: 2",
     "storage_type: 7",
     '10:53: f1.pool: parameter "storage_type": 7 is out of range; it must be from 0 to 2'),
    ("frag: 1\n",
     "",
     "1:1: the schema version is missing; begin with `frag: 1`"),
    ("frag: 1\n",
     "frag: 2\n",
     "1:7: schema version 2 is not known; this program reads version 1"),
    ("application: app\n",
     "",
     "1:1: the application has no name; add `application: NAME`"),
    ("  f1:\n",
     "  f 1:\n",
     '8:3: fragment "f 1" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters'),
    ("  f2:\n",
     "  f.2:\n",
     '22:3: fragment "f.2" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters'),
    ("      mid: {",
     "      mi.d: {",
     '16:7: f1: operator "mi.d" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters'),
    ("mid: {type: forward}",
     "mid: {}",
     "16:7: f1.mid: has no type, and no composer makes it; add `type: NAME`"),
    ("type: forward",
     "typ: forward",
     '16:13: f1.mid: unknown key "typ"; did you mean "type"?'),
    ("{type: block_memory_pool, ",
     "{",
     "10:7: f1.pool: a resource has no type; write for example {type: unbounded_allocator}"),
    ("type: block_memory_pool",
     "type: block_memory_pol",
     '10:7: f1.pool: unknown resource type "block_memory_pol"; did you mean "block_memory_pool"?'),
    ("{type: count, count: 3}",
     "{count: 3}",
     "15:22: f1.tx: a condition has no type; write for example {type: count, count: 10}"),
    ("[{type: count, count: 3}, {type: periodic, recess_period: 30hz}]",
     "{type: count, count: 3}",
     "15:21: f1.tx: conditions is a map; it must be a list ([a, b])"),
    ("{type: count, count: 3}, {type: periodic,",
     "{type: count, name: n, count: 3}, {type: periodic, name: n,",
     '15:56: f1.tx: two conditions are called "n"; names are unique in an operator'),
    ("      rx: {type: ping_tensor_rx}",
     "      - rx: {type: ping_tensor_rx}",
     "24:7: f2: operators is a list; it must be a map (keys and values)"),
    ("rx: {type: ping_tensor_rx}",
     "rx: ping_tensor_rx",
     "24:11: f2.rx: an operator is a single value; it must be a map (keys and values)"),
    ("parameters: {from_config: tensor, allocator: $pool}",
     "parameters: [1]",
     "14:21: f1.tx: parameters is a list; it must be a map (keys and values)"),
    ("scheduler: {type: event_based, worker_thread_number: 2}",
     "scheduler: event_based",
     "19:16: f1.scheduler: scheduler is a single value; it must be a map (keys and values)"),
    ("type: event_based",
     "type: event_base",
     '19:23: f1.scheduler: no scheduler "event_base"; did you mean "event_based"?'),
    ("worker_thread_number: 2",
     "worker_thread_number: 0",
     '19:58: f1.scheduler: worker_thread_number "0" is not a whole number from 1 to 1024'),
    ("  - f1.mid.out -> f2.rx.in",
     "  - {from: f1.mid.out, to: f2.rx.in, capacity: 0}",
     '26:48: capacity "0" is not a whole number from 1 to 65536'),
    ("  - f1.mid.out -> f2.rx.in",
     "  - {from: f1.mid.out, to: f2.rx.in, policy: popp}",
     '26:46: policy "popp" is not known; did you mean "pop"?'),
    ("  - f1.mid.out -> f2.rx.in",
     "  - {from: f1.mid.out}",
     "26:5: a flow without `to`; add it"),
    ("  - f1.mid.out -> f2.rx.in",
     "  - f1.mid.out -> ",
     '26:5: "" is not a valid end of a flow; write FRAGMENT.OPERATOR.PORT or FRAGMENT.OPERATOR'),
    ("tx.out -> mid.in",
     "f1.tx.out -> f1.mid.in",
     '18:9: f1: "f1.tx.out" is not a valid end of a flow; write OPERATOR.PORT or OPERATOR'),
    ("f1.mid.out -> f2.rx.in",
     "mid.out -> rx.in",
     '26:5: flow end mid.out: unknown fragment "mid"; fragments: f1, f2'),
    ("tx.out -> mid.in",
     "mid.in -> tx.out",
     "18:9: flow f1.mid.in -> f1.tx.out: it begins at an input and ends at an output; turn it round: f1.tx.out -> f1.mid.in"),
    ("      - tx.out -> mid.in",
     "      - tx.out -> mid.in\n      - {from: tx.out, to: mid.in, capacity: 3}",
     "19:28: flow f1.tx.out -> f1.mid.in: it is there already with another capacity, policy or encryption (first at app.yaml:18:9); keep one of them"),
    ("mid: {type: forward}",
     "mid: {type: forward, when: {sorce: aja}}",
     '16:35: unknown argument "sorce"; did you mean "source"?'),
    ("mid: {type: forward}",
     "mid: {type: forward, when: {source: ajaa}}",
     '16:43: when: argument source is never "ajaa"; did you mean "aja"?'),
    ("default: replayer",
     "default: replaye",
     '4:21: argument source: default "replaye" is not one of the choices; did you mean "replayer"?'),
    ("  f2:\n",
     "  f2:\n    extensions: libmissing.so\n",
     "23:17: f2: extensions is a single value; it must be a list ([a, b])"),
    ("  f2:\n",
     "  f2:\n    compose: nothing\n",
     '22:3: f2: compose: unknown composer "nothing"; no library that is loaded has one'),
    ("block_size: 2MB, ",
     "",
     '10:7: f1.pool: parameter "block_size" (size) is required and not set'),
    ("{type: periodic, recess_period: 30hz}",
     "{type: periodic}",
     '15:47: f1.tx: condition periodic: parameter "recess_period" (duration) is required and not set'),
    ("    watchdog: 2s",
     "    on_failure: {policy: migrate, lease: 10ms}",
     "21:42: f1: on_failure lease is neither 0s nor from 1s to 1h"),
    ("    watchdog: 2s",
     "    on_failure: {policy: restrt}",
     '21:26: f1: on_failure policy "restrt" is not known; did you mean "restart"?'),
    ("help: where frames come from",
     "help: where: frames come from",
     '4:68: inside the "{" of line 4, column 11 a comma is missing, or quotes around a text that holds a colon or a bracket'),
    ("tensor: {rows: 4, columns: 4}",
     "tensor: @x",
     '6:11: a text cannot begin with "@"; put it into quotes'),
    ("tensor: {rows: 4, columns: 4}",
     "tensor: %x",
     '6:11: a text cannot begin with "%"; put it into quotes'),
    ("rows: 4",
     "rows: [4]",
     '6:18: f1.tx: parameter "rows": a list is not a valid integer; write a whole number such as 3'),
    ("storage_type: 2",
     "storage_type: device",
     '10:53: f1.pool: parameter "storage_type": "device" is not a valid integer; write a whole number such as 3'),
    ("mid: {type: forward}",
     "mid: {type: forward, count: 3}",
     '16:28: f1.mid: unknown key "count"; valid keys: type, parameters, conditions, ports, when, watchdog, metadata, metadata_policy, or_combine_port_conditions, resources, align, deadline, rate, budget'),
    ("mid: {type: forward}",
     "mid: {type: }",
     "16:19: f1.mid: type is empty; it must be a single value"),
    ("      rx: {type: ping_tensor_rx}\n",
     "",
     "22:3: f2: has no operators (or `when` excludes all of them); add operators or a composer"),
    ("watchdog: 2s",
     "host: a.b",
     '21:11: f1: host "a.b" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters'),
    ("watchdog: 2s",
     "metadata: maybe",
     '21:15: f1: metadata "maybe" is neither true nor false'),
    ("flows:\n  - f1",
     "deadlines:\n  - {path: [f2.rx, f1.mid], budget: 5ms}\nflows:\n  - f1",
     "26:20: a deadline has a path from f2.rx to f1.mid, and no flow leads there"),
    ("    watchdog: 2s",
     "    deadlines:\n      - {path: [mid, tx], budget: 5ms}",
     "22:22: a deadline has a path from f1.mid to f1.tx, and no flow leads there"),
    ("f1.mid.out -> f2.rx.in",
     "f1.mid.out -> f2.rx.in, capacity: 3",
     "26:5: a flow with an arrow takes no keys; write {from: A.OUT, to: B.IN, capacity: 4}"),
    ("parameters: {from_config: tensor, allocator: $pool}",
     "parameters: {from_config: tensor, {allocator: $pool}}",
     "14:43: a key must be a name, and this is none; close the { or [ before it, if one is open"),
)

# An application of one fragment.
SINGLE = """\
frag: 1
application: app
arguments:
  rate: {default: 30hz, help: how often}
  n: {default: "3"}
config:
  det: {rows: 4}
resources:
  pool: {type: block_memory_pool, block_size: 2MB, num_blocks: 8}
operators:
  tx:
    type: ping_tensor_tx
    parameters:
      from_config: det
      allocator: $pool
    conditions:
      - {type: count, count: "${n}"}
      - type: periodic
        recess_period: "${rate}"
    ports: {out: {condition: none}}
  rx: {type: ping_tensor_rx}
flows:
  - {from: tx.out, to: rx.in, capacity: 2, policy: pop}
scheduler:
  type: event_based
  pin_cores: [0]
"""
MISTAKES_IN_SINGLE = (
    ("{default: 30hz, help: how often}",
     "{defalt: 30hz, help: how often}",
     '4:10: argument rate: unknown key "defalt"; did you mean "default"?'),
    ('n: {default: "3"}',
     "n: 3",
     "5:6: argument n: an argument is a single value; it must be a map (keys and values)"),
    ('"${n}"',
     '"${m}"',
     '17:30: unknown argument "m"; declared: rate, n'),
    ('"${n}"',
     '"${n"',
     '17:30: "${n" begins a reference to an argument and does not name one; write ${NAME}'),
    ('"${n}"',
     "$n",
     '17:30: app.tx: condition count: parameter "count": $n names nothing; write "${n}" for an argument, or quotes around a text that begins with $'),
    ("operators:",
     "operatrs:",
     '10:1: unknown key "operatrs"; did you mean "operators"?'),
    ("resources:",
     "resource:",
     '8:1: no key "resource"; list it under resources of the fragment, and write $name as the parameter'),
    ("flows:",
     "flow:",
     '22:1: unknown key "flow"; did you mean "flows"?'),
    ("application: app",
     "aplication: app",
     '2:1: unknown key "aplication"; did you mean "application"?'),
    ("frag: 1",
     "fragg: 1",
     '1:1: unknown key "fragg"; did you mean "frag"?'),
    ("arguments:",
     "argument:",
     '3:1: unknown key "argument"; did you mean "arguments"?'),
    ("scheduler:",
     "schedular:",
     '24:1: unknown key "schedular"; did you mean "scheduler"?'),
    ("    conditions:",
     "    condition:",
     '16:5: app.tx: no key "condition"; write conditions: [{type: count, count: 10}]'),
    ("    ports:",
     "    port:",
     '20:5: app.tx: unknown key "port"; did you mean "ports"?'),
    ("ports: {out:",
     "ports: {ou:",
     '20:13: app.tx: unknown port "ou"; its ports: out'),
    ("{condition: none}",
     "{conditon: none}",
     '20:19: app.tx.out: unknown key "conditon"; did you mean "condition"?'),
    ("{condition: none}",
     "{condition: non}",
     '20:30: app.tx.out: condition "non" is not known; did you mean "none"?'),
    ("{from: tx.out,",
     "{form: tx.out,",
     '23:6: app: unknown key "form"; did you mean "from"?'),
    (" to: rx.in,",
     "",
     "23:5: app: a flow without `to`; add it"),
    ("capacity: 2",
     "capacity: two",
     '23:41: app: capacity "two" is not a whole number from 1 to 65536'),
    ("policy: pop",
     "policy: 7",
     '23:52: app: policy "7" is not known; valid: block, pop, reject, fault, latest, async_buffer, 0, 1, 2'),
    ("from: tx.out",
     "from: app.tx.out",
     '23:12: app: "app.tx.out" is not a valid end of a flow; write OPERATOR.PORT or OPERATOR'),
    ("      - type: periodic\n        recess",
     "      - recess",
     "18:9: app.tx: a condition has no type; write for example {type: count, count: 10}"),
    ("      - type: periodic\n        recess",
     "        type: periodic\n        recess",
     "18:9: this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column"),
    ("      - type: periodic\n        recess",
     "      - type: periodic\n      recess",
     "19:7: this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column"),
    ("    parameters:\n      from_config: det\n      allocator: $pool",
     "    parameters:\n      - from_config: det\n      - allocator: $pool",
     "14:7: app.tx: parameters is a list; it must be a map (keys and values)"),
    ("      allocator: $pool",
     "    allocator: $pool",
     '15:5: app.tx: no key "allocator"; list it under resources of the fragment, and write $name as the parameter'),
    ("from_config: det",
     "from_confg: det",
     '14:7: app.tx: unknown parameter "from_confg"; its parameters: allocator, storage_type, batch_size, rows, columns, channels, data_type, tensor_name'),
    ("type: block_memory_pool",
     "type: BlockMemoryPol",
     '9:3: app.pool: unknown resource type "BlockMemoryPol"; did you mean "block_memory_pool"?'),
    ("type: block_memory_pool",
     "type: BlockMemoryPoool",
     '9:3: app.pool: unknown resource type "BlockMemoryPoool"; did you mean "block_memory_pool"?'),
    ("block_size: 2MB",
     "blok_size: 2MB",
     '9:35: app.pool: unknown parameter "blok_size"; did you mean "block_size"?'),
    ("block_size: 2MB, ",
     "blocksize: 2MB, ",
     '9:35: app.pool: unknown parameter "blocksize"; did you mean "block_size"?'),
    ("2MB",
     "2 megabytes",
     '9:47: app.pool: parameter "block_size": "2 megabytes" is not a valid size; write bytes, or a number with a unit such as 512Mi or 2MB'),
    ("pin_cores: [0]",
     "pin_cores: 0",
     "26:14: app.scheduler: pin_cores is a single value; it must be a list ([a, b])"),
    ("  type: event_based",
     "  kind: event_based",
     '25:3: app.scheduler: unknown key "kind"; valid keys: type, worker_thread_number, stop_on_deadlock, stop_on_deadlock_timeout_ms, stop_on_deadlock_timeout, max_duration_ms, check_recession_period_ms, pin_cores, require_pin_cores, strict_thread_pinning, strict_job_thread_pinning, clock'),
    ("type: ping_tensor_rx",
     "type: [ping_tensor_rx]",
     "21:14: app.rx: type is a list; it must be a single value"),
    ("{type: ping_tensor_rx}",
     '{type: "ping_tensor_rx}',
     '21:14: this quote (") is not closed; add one at the end of the text'),
    ("scheduler:\n",
     "resources: {}\nscheduler:\n",
     '24:1: the key "resources" is given twice in one map; remove one'),
    ("from_config: det",
     "from_config: det.rowz",
     '14:20: app.tx: from_config: config has no "det.rowz"'),
    ("  det: {rows: 4}",
     "  - det: {rows: 4}",
     "7:3: config is a list; it must be a map (keys and values)"),
    ("  det: {rows: 4}",
     "  det",
     "7:3: config is a single value; it must be a map (keys and values)"),
    ("  det: {rows: 4}",
     "  det: 4",
     '7:3: app.tx: unknown parameter "det"; its parameters: allocator, storage_type, batch_size, rows, columns, channels, data_type, tensor_name'),
    ("rows: 4",
     "rows: many",
     '7:15: app.tx: parameter "rows": "many" is not a valid integer; write a whole number such as 3'),
    ("rows: 4",
     "rowz: 4",
     '7:9: app.tx: unknown parameter "rowz"; did you mean "rows"?'),
    ("  rx: {type: ping_tensor_rx}",
     "  rx: {type: block_memory_pool}",
     '21:3: app.rx: operator type "block_memory_pool" names the resource "block_memory_pool"; list it under resources'),
    ("  rx: {type: ping_tensor_rx}",
     "  rx: {type: periodic}",
     '21:3: app.rx: operator type "periodic" names the condition "periodic"; list it under an operator\'s conditions'),
    ("type: periodic",
     "type: ping_rx",
     '18:9: app.tx: condition type "ping_rx" names the operator "ping_rx"; list it under operators'),
    ("to: rx.in",
     "to: rx.input",
     '23:24: flow end app.rx.input: no input "input"; its inputs: in'),
    ("  rx: {type: ping_tensor_rx}\n",
     "",
     '22:24: flow end rx.in: unknown operator "app.rx"; operators: tx'),
    ("scheduler:\n",
     "extention: [x.so]\nscheduler:\n",
     '24:1: unknown key "extention"; did you mean "extensions"?'),
    ("scheduler:\n",
     "---\nscheduler:\n",
     "24:1: more than one document; write one file each"),
    ("frag: 1",
     "frag = 1",
     "2:12: no key can stand here; indent it as the keys around it, and write a space after the colon in the line before"),
    ("frag: 1",
     "frag 1",
     "2:12: no key can stand here; indent it as the keys around it, and write a space after the colon in the line before"),
    ("flows:\n",
     "// flows\nflows:\n",
     '22:1: "// flows" is no key with a value; write a colon and a space after the key'),
    ("{type: ping_tensor_rx}",
     "{\n type: ping_tensor_rx\n",
     '21:7: this "{" is not closed; add "}"'),
    ("scheduler:\n",
     "fragments:\nscheduler:\n",
     "24:1: there are no fragments (or `when` excludes all of them); add one"),
    ("scheduler:\n",
     "fragments: []\nscheduler:\n",
     "24:12: fragments is a list; it must be a map (keys and values)"),
    ("scheduler:\n",
     "watchdog: -2s\nscheduler:\n",
     '24:11: app: watchdog "-2s" is not a valid duration; write for example 10ms, 2s or 30hz'),
    ("{type: ping_tensor_rx}",
     "{type: ping_tensor_rx, when: {rat: 30hz}}",
     '21:37: unknown argument "rat"; did you mean "rate"?'),
    ("{type: ping_tensor_rx}",
     "{type: ping_tensor_rx, when: [rate]}",
     "21:36: when is a list; it must be a map (keys and values)"),
    ("{type: ping_tensor_rx}",
     "{type: ping_tensor_rx, when: {rate: 10hz}}",
     "23:24: flow end rx.in: operator app.rx is excluded by its when; give the flow the same when"),
    ("scheduler:\n",
     "host: my host\nscheduler:\n",
     '24:7: app: host "my host" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters'),
    ("scheduler:\n",
     'extensions: ["C:\\dir\\x.so"]\nscheduler:\n',
     "24:17: inside double quotes a backslash begins an escape, and this is none; write two of them, or single quotes around the text"),
)

# Subgraphs with two instances each.
NESTED = """\
frag: 1
application: app
subgraphs:
  inner:
    operators:
      fwd: {type: forward}
      side: {type: forward}
    flows: [fwd.out -> side.in]
    ports: {data_in: fwd.in, data_out: {out: side.out}}
  cam:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 3}]}
      pass: {subgraph: inner}
    flows: [tx.out -> pass.data_in]
    ports: {video: pass.data_out}
operators:
  a: {subgraph: cam}
  b: {subgraph: cam}
  rx: {type: ping_rx}
  ry: {type: ping_rx}
flows:
  - a.video -> rx.in
  - b.video -> ry.in
"""
MISTAKES_IN_NESTED = (
    ("data_in: fwd.in",
     "data_in: fwd.inn",
     '9:22: subgraphs.inner: port "data_in": fwd.inn: no input "inn"; did you mean "in"?'),
    ("{out: side.out}",
     "side.ot",
     '9:40: subgraphs.inner: port "data_out": side.ot: no output "ot"; its outputs: out'),
    ("{out: side.out}",
     "{out: side.in}",
     '9:46: subgraphs.inner: port "data_out": side.in: this is an input, and a flow begins at an output; its outputs: out'),
    ("{out: side.out}",
     "{out: sid.out}",
     '9:46: subgraphs.inner: port "data_out": unknown operator "sid"; did you mean "side"?'),
    ("video: pass.data_out",
     "video: pass.data_ot",
     '15:20: subgraphs.cam: port "video": pass.data_ot: subgraph "inner" has no port "data_ot"; did you mean "data_out"?'),
    ("video: pass.data_out",
     "video: {out: pass.data_in}",
     '15:26: subgraphs.cam: port "video": pass.data_in: this is an input, and a flow begins at an output; its outputs: out'),
    ("tx.out -> pass.data_in",
     "tx.ot -> pass.data_in",
     '14:13: subgraphs.cam: flow end tx.ot: no output "ot"; its outputs: out'),
    ("tx.out -> pass.data_in",
     "tx.out -> pass.data",
     '14:13: subgraphs.cam: flow end pass.data: subgraph "inner" has no port "data"; its inputs: data_in'),
    ("fwd.out -> side.in",
     "fwd.out -> side.out",
     '8:13: subgraphs.inner: flow end side.out: this is an output, and a flow ends at an input; its inputs: in'),
    ("a.video -> rx.in",
     "a.vido -> rx.in",
     '22:5: flow end a.vido: subgraph "cam" has no port "vido"; did you mean "video"?'),
)


class Mistakes(cluster.ClusterTest):
    def errors(self, graph):
        p = self.start("fragctl", "validate", self.write("app.yaml", graph))
        code = p.wait()
        lines = p.stderr.replace(self.folder + "/", "").splitlines()
        return code, lines

    def test_the_graph_has_none(self):
        self.assertEqual(self.errors(GRAPH), (0, []))
        self.assertEqual(self.errors(SINGLE), (0, []))
        self.assertEqual(self.errors(NESTED), (0, []))

    def test_one_mistake_gives_one_error(self):
        for graph, mistakes in (GRAPH, MISTAKES), (SINGLE, MISTAKES_IN_SINGLE), \
                (NESTED, MISTAKES_IN_NESTED):
            for right, wrong, error in mistakes:
                with self.subTest(wrong=wrong):
                    self.assertEqual(graph.count(right), 1, right)
                    self.assertEqual(self.errors(graph.replace(right, wrong)),
                                     (2, ["app.yaml:" + error]))

    def test_a_mistake_beside_other_files(self):
        """Neither the files that from_file names nor the keys of --config are missed as well."""
        self.write("det.yaml", "{rows: 5}")
        graph = SINGLE.replace("det: {rows: 4}", "det: {from_file: det.yaml}")
        self.assertEqual(self.errors(graph), (0, []))
        self.assertEqual(self.errors(graph.replace("flows:", "flow:")),
                         (2, ['app.yaml:22:1: unknown key "flow"; did you mean "flows"?']))
        more = self.write("more.yaml", "det: {rows: 5\n")
        graph = SINGLE.replace("config:\n  det: {rows: 4}\n", "")
        p = self.start("fragctl", "validate", self.write("app.yaml", graph), "--config", more)
        self.assertEqual(p.wait(), 2)
        self.assertEqual(p.stderr, more + ':1:6: this "{" is not closed; add "}"')

    def test_a_variable_of_an_operator_with_a_mistake_is_none(self):
        graph = GRAPH + "variables: {gain: {type: f32, writer: f1.tx, readers: [f2.rx]}}\n"
        self.assertEqual(self.errors(graph), (0, []))
        self.assertEqual(self.errors(graph.replace("ping_tensor_rx", "ping_tensor_r")),
                         (2, ['app.yaml:24:7: f2.rx: unknown operator type "ping_tensor_r"; did you mean "ping_tensor_rx"?']))

    def test_in_a_subgraph_its_parameters_are_named(self):
        graph = SINGLE.replace("operators:", 'subgraphs:\n  cam: {parameters: {size: {default: 3}}, operators: {x: {type: ping_tx, conditions: [{type: count, count: "${sice}"}]}}}\noperators:\n  c: {subgraph: cam}')
        self.assertEqual(self.errors(graph.replace("sice", "size")), (0, []))
        code, errors = self.errors(graph)
        self.assertEqual((code, [e.split(": ", 1)[1] for e in errors]),
                         (2, ['unknown argument "sice"; did you mean "size"?']))

    def test_two_mistakes_give_two_errors(self):
        """An error hides only what follows from it."""
        graph = GRAPH.replace("mid: {type: forward}", "tx: {typ: forward}").replace("f2.rx.in", "f2.rxx.in")
        graph = graph.replace("tx.out -> mid.in", "txx.out -> mid.in")
        code, errors = self.errors(graph)
        self.assertEqual([e.split(" ", 1)[0] for e in errors],
                         ["app.yaml:16:7:", "app.yaml:16:12:", "app.yaml:18:9:", "app.yaml:26:5:"])
