/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
/*
 * The graph of one application. Columns follow the flows; a band for each machine holds a box for
 * each fragment, and that its operators. It is laid out once for what there is, so that nothing
 * moves while numbers change. Texts come from the driver and are only ever set as text.
 */
const Graph = (() => {
	const CARD = { w: 172, h: 58 }, COLUMN = 268, ROW = 74;
	const BOX = { top: 26, side: 14, bottom: 14, gap: 16 }, LANE = { top: 32, side: 18, bottom: 16, gap: 18 };
	const USES = ["busy", "thread", "memory", "room", "input", "time", "suspended"];
	const MANY = 60, TALL = 14;
	const svg = document.getElementById("graph");
	let picture = null; /* what is drawn */
	let view = { x: 0, y: 0, k: 1 }, fitted = true;
	let handlers = null;

	const make = (name, attributes, parent) => {
		const element = document.createElementNS("http://www.w3.org/2000/svg", name);
		for (const key in attributes) element.setAttribute(key, attributes[key]);
		if (parent) parent.appendChild(element);
		return element;
	};
	/* Only what differs is touched. */
	const set = (element, name, value) => {
		const text = String(value);
		if (element["_" + name] === text) return;
		element["_" + name] = text;
		element.setAttribute(name, text);
	};
	const write = (element, text) => {
		if (element._text === text) return;
		element._text = text;
		element.textContent = text;
	};

	/* --- layout --- */

	/* [operator]: its column. Flows that close a circle are left out of account. */
	function columns(count, flows) {
		const next = Array.from({ length: count }, () => []), before = Array(count).fill(0);
		const state = new Uint8Array(count), column = new Array(count).fill(0), order = [];
		for (const [a, b] of flows) next[a].push(b);
		for (let root = 0; root < count; root++) {
			if (state[root]) continue;
			const stack = [[root, 0]];
			state[root] = 1;
			while (stack.length) {
				const top = stack[stack.length - 1], [at, i] = top;
				if (i === next[at].length) {
					state[at] = 2;
					order.push(at);
					stack.pop();
					continue;
				}
				top[1]++;
				const to = next[at][i];
				if (state[to] === 1) next[at][i] = -1; /* closes a circle */
				else if (!state[to]) {
					state[to] = 1;
					stack.push([to, 0]);
				}
			}
		}
		order.reverse();
		for (const at of order)
			for (const to of next[at])
				if (to >= 0) {
					column[to] = Math.max(column[to], column[at] + 1);
					before[to]++;
				}
		/* A source stands beside what it feeds. */
		for (const at of order) {
			const after = next[at].filter((to) => to >= 0).map((to) => column[to]);
			if (!before[at] && after.length) column[at] = Math.min(...after) - 1;
		}
		return column;
	}

	/* [operator]: one of those that it is connected with inside its fragment. */
	function components(ops, pairs) {
		const of = ops.map((o) => o.i);
		const root = (i) => { while (of[i] !== i) i = of[i] = of[of[i]]; return i; };
		for (const [a, b] of pairs)
			if (ops[a].fragment === ops[b].fragment) of[root(a)] = root(b);
		return of.map((_, i) => root(i));
	}

	/*
	 * Gives each operator of a fragment a row, beside what it gets messages from. What is not
	 * connected stands below each other, and in a fragment that would be far too high in stacks
	 * side by side.
	 */
	function arrange(box, root, before, lanes) {
		const parts = new Map(), wide = box.c1 - box.c0 + 1;
		for (const o of box.ops) {
			if (!parts.has(root[o.i])) parts.set(root[o.i], new Map());
			const cells = parts.get(root[o.i]);
			if (!cells.has(o.c)) cells.set(o.c, []);
			cells.get(o.c).push(o);
		}
		const heights = [...parts.values()].map((cells) => Math.max(...[...cells.values()].map((c) => c.length)));
		const all = heights.reduce((a, b) => a + b, 0);
		const most = all > TALL ? Math.ceil(Math.sqrt(all * wide * COLUMN / (ROW * 2.4 * lanes))) : all;
		let row = 0, stack = 0, n = 0;
		box.rows = 0;
		for (const cells of parts.values()) {
			const high = heights[n++];
			if (row > 0 && row + high > most) {
				row = 0;
				stack++;
			}
			for (const c of [...cells.keys()].sort((a, b) => a - b)) {
				const cell = cells.get(c), weight = new Map(cell.map((o) => {
					const rows = before[o.i].filter((p) => p.box === box && p.row !== undefined).map((p) => p.row);
					return [o, rows.length ? rows.reduce((a, b) => a + b) / rows.length : o.i / 1e6];
				}));
				cell.sort((a, b) => weight.get(a) - weight.get(b) || a.i - b.i);
				cell.forEach((o, r) => {
					o.row = row + r + (high - cell.length) / 2;
					o.box = box;
					o.c += stack * wide;
				});
			}
			row += high;
			box.rows = Math.max(box.rows, row);
		}
		box.c1 += stack * wide;
	}

	/* Boxes that share a column get rows of their own. Returns the height. */
	function pack(boxes, gap) {
		let height = 0;
		boxes.forEach((box, i) => {
			let y = 0, moved = true;
			while (moved) {
				moved = false;
				for (let j = 0; j < i; j++) {
					const o = boxes[j];
					if (o.c1 >= box.c0 && o.c0 <= box.c1 && y < o.y + o.h + gap && y + box.h + gap > o.y) {
						y = o.y + o.h + gap;
						moved = true;
					}
				}
			}
			box.y = y;
			height = Math.max(height, y + box.h);
		});
		return height;
	}

	function layout(app) {
		const ops = app.operators.map((op, i) => ({
			i, name: op.name, fragment: op.name.split(".")[0],
			label: op.name.slice(op.name.indexOf(".") + 1),
			machine: (app.hosts[op.host_index] || {}).worker || "this machine",
		}));
		const pairs = app.flows.map((f) => [f.sender_index, f.receiver_index])
			.filter(([a, b]) => a !== null && b !== null && a < ops.length && b < ops.length && a !== b);
		const column = columns(ops.length, pairs), lanes = new Map();
		for (const op of ops) {
			op.c = column[op.i];
			if (!lanes.has(op.machine)) lanes.set(op.machine, new Map());
			const boxes = lanes.get(op.machine);
			if (!boxes.has(op.fragment)) boxes.set(op.fragment, { name: op.fragment, ops: [] });
			boxes.get(op.fragment).ops.push(op);
		}
		const before = ops.map(() => []), root = components(ops, pairs);
		for (const [a, b] of pairs) before[b].push(ops[a]);
		let y = 0, width = 0;
		const result = { ops, lanes: [], boxes: [] };
		const sorted = [...lanes].sort((a, b) => first(a[1]) - first(b[1]) || (a[0] < b[0] ? -1 : 1));
		for (const [machine, map] of sorted) {
			const boxes = [...map.values()];
			for (const box of boxes) {
				box.c0 = Math.min(...box.ops.map((o) => o.c));
				box.c1 = Math.max(...box.ops.map((o) => o.c));
				arrange(box, root, before, lanes.size);
				box.h = BOX.top + box.rows * ROW - (ROW - CARD.h) + BOX.bottom;
			}
			boxes.sort((a, b) => a.c0 - b.c0 || a.ops[0].i - b.ops[0].i);
			const h = LANE.top + pack(boxes, BOX.gap) + LANE.bottom;
			for (const box of boxes) {
				box.x = LANE.side + box.c0 * COLUMN;
				box.w = (box.c1 - box.c0) * COLUMN + CARD.w + 2 * BOX.side;
				box.y += y + LANE.top;
				for (const o of box.ops) {
					o.x = LANE.side + BOX.side + o.c * COLUMN;
					o.y = box.y + BOX.top + o.row * ROW;
				}
				width = Math.max(width, box.x + box.w + LANE.side);
				result.boxes.push(box);
			}
			result.lanes.push({ name: machine, y, h });
			y += h + LANE.gap;
		}
		result.width = width;
		result.height = Math.max(0, y - LANE.gap);
		return result;
	}
	const first = (boxes) => Math.min(...[...boxes.values()].flatMap((b) => b.ops.map((o) => o.c)));

	/* --- drawing --- */

	const fit = (text, chars) => text.length > chars ? text.slice(0, chars - 1) + "\u2026" : text;

	function drawOp(o, parent) {
		const g = make("g", { class: "op", role: "button", tabindex: -1, transform: `translate(${o.x} ${o.y})` }, parent);
		make("rect", { class: "card", width: CARD.w, height: CARD.h, rx: 8 }, g);
		make("text", { class: "name", x: 12, y: 21 }, g).textContent = fit(o.label, 23);
		const rate = make("text", { class: "rate", x: 12, y: 38 }, g);
		const most = make("text", { class: "rate most", x: CARD.w - 12, y: 38 }, g);
		make("text", { class: "bang", x: CARD.w - 12, y: 21 }, g).textContent = "!";
		make("rect", { class: "track", x: 12, y: CARD.h - 12, width: CARD.w - 24, height: 5, rx: 1 }, g);
		const card = { ...o, g, rate, most, title: make("title", {}, g), bars: {} };
		g.setAttribute("aria-label", o.name);
		for (const event of ["pointerenter", "focus"]) g.addEventListener(event, () => describe(card));
		g.addEventListener("click", () => { if (!dragged) handlers.open(o.name); });
		return card;
	}

	/* From the right side of one card to the left side of another one; around, if it goes back. */
	function route(a, b, atA, atB) {
		const x1 = a.x + CARD.w, y1 = a.y + CARD.h * atA, x2 = b.x, y2 = b.y + CARD.h * atB;
		if (x2 > x1) {
			const d = Math.max(36, Math.min(150, (x2 - x1) / 2));
			return { path: `M${x1} ${y1}C${x1 + d} ${y1} ${x2 - d} ${y2} ${x2} ${y2}`, x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
		}
		const low = Math.max(a.y, b.y) + CARD.h + 26;
		return {
			path: `M${x1} ${y1}C${x1 + 44} ${y1} ${x1 + 44} ${low} ${x1 - 10} ${low}L${x2 + 10} ${low}C${x2 - 44} ${low} ${x2 - 44} ${y2} ${x2} ${y2}`,
			x: (x1 + x2) / 2, y: low,
		};
	}

	function drawFlow(flow, key, a, b, atA, atB, parent) {
		const g = make("g", { class: "flow" }, parent), r = route(a, b, atA, atB);
		const line = make("path", { class: "line", d: r.path }, g);
		make("path", { class: "hit", d: r.path }, g);
		const label = make("text", { x: r.x, y: r.y - 6 }, g);
		const gauge = make("rect", { class: "gauge", x: r.x - 20, y: r.y + 4, width: 40, height: 4, rx: 2 }, g);
		const fill = make("rect", { class: "fill", x: r.x - 20, y: r.y + 4, width: 0, height: 4, rx: 2 }, g);
		const drawn = { key, g, line, label, gauge, fill, title: make("title", {}, g) };
		g.addEventListener("pointerenter", () => describeFlow(drawn));
		g.addEventListener("click", () => { if (!dragged) handlers.openFlow(key); });
		return drawn;
	}

	const flowKey = (f) => f.from + " -> " + f.to;
	/* Ends of flows are spread over the side of a card, in the order of the graph. */
	function spread(flows, end) {
		const lists = new Map();
		flows.forEach((f, i) => {
			if (!lists.has(f[end])) lists.set(f[end], []);
			lists.get(f[end]).push(i);
		});
		const at = [];
		for (const list of lists.values())
			list.forEach((i, n) => { at[i] = (n + 1) / (list.length + 1); });
		return at;
	}

	function build(app, signature) {
		const plan = layout(app), g = make("g", {});
		picture = { signature, plan, ops: new Map(), flows: new Map(), g, isFar: svg.classList.contains("far") };
		for (const lane of plan.lanes) {
			const l = make("g", { class: "lane" }, g);
			make("rect", { x: 0, y: lane.y, width: plan.width, height: lane.h, rx: 12 }, l);
			make("text", { x: LANE.side, y: lane.y + 21 }, l).textContent = lane.name;
		}
		for (const box of plan.boxes) {
			const b = make("g", { class: "fragment" }, g);
			make("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 10 }, b);
			make("text", { x: box.x + BOX.side, y: box.y + 18 }, b).textContent = fit(box.name, 26 + (box.c1 - box.c0) * 40);
		}
		const flows = make("g", {}, g), cards = make("g", {}, g);
		for (const o of plan.ops) picture.ops.set(o.name, drawOp(o, cards));
		const out = spread(app.flows, "sender_index"), into = spread(app.flows, "receiver_index");
		app.flows.forEach((f, i) => {
			const a = plan.ops[f.sender_index], b = plan.ops[f.receiver_index], key = flowKey(f);
			if (a && b) picture.flows.set(key, drawFlow(f, key, a, b, out[i], into[i], flows));
		});
		svg.replaceChildren(g);
		svg.classList.toggle("many", plan.ops.length > MANY);
		const one = plan.ops.find((o) => o.c === 0);
		picture.current = one && picture.ops.get(one.name);
		if (picture.current) picture.current.g.setAttribute("tabindex", 0);
		fitted = true;
		place();
	}

	/* --- numbers --- */

	/* Of many operators only those are described that somebody points at. */
	function describe(o) {
		const words = picture.options.words(o.data);
		write(o.title, o.name + "\n" + words.long);
		set(o.g, "aria-label", (o.guilty ? "To blame: " : "") + o.name + ", " + words.long);
	}

	function updateOp(o, op, app, options, many) {
		o.data = op;
		o.guilty = app.cause.operator === op.name && app.cause.kind !== "none";
		set(o.g, "class", "op" + (o.guilty ? " guilty" : "") + (op.has_ended ? " ended" : "") +
			(options.selected === op.name ? " selected" : "") + (options.matches(op.name) ? "" : " dim"));
		if (!isFar()) {
			const words = options.words(op);
			write(o.rate, words.short);
			write(o.most, words.most);
		}
		if (!many || o.guilty) describe(o);
		const whole = USES.reduce((s, u) => s + op[u + "_ns"], 0), width = CARD.w - 24;
		let x = 12;
		for (const use of USES) {
			const w = whole ? op[use + "_ns"] / whole * width : 0;
			let bar = o.bars[use];
			const digits = many ? 0 : 1;
			if (!bar && w < 0.5) continue;
			if (!bar)
				bar = o.bars[use] = make("rect", { class: "use-" + use, y: CARD.h - 12, height: 5 }, o.g);
			set(bar, "x", x.toFixed(digits));
			set(bar, "width", w.toFixed(digits));
			x += w;
		}
	}

	function describeFlow(f) {
		const words = picture.options.flowWords(f.data);
		write(f.label, words.short);
		write(f.title, words.long);
	}

	function updateFlow(f, flow, app, options, many) {
		const guilty = app.cause.from === flow.from && app.cause.to === flow.to && app.cause.kind !== "none";
		f.data = flow;
		set(f.g, "class", "flow" + (guilty ? " guilty" : "") + (flow.sent ? "" : " quiet") +
			(options.selected === f.key ? " selected" : "") +
			(options.matches(flow.from) || options.matches(flow.to) ? "" : " dim"));
		if (!many || guilty) describeFlow(f);
		const rate = app.window_ns ? flow.sent * 1e9 / app.window_ns : 0;
		set(f.line, "stroke-width", (1.2 + Math.min(4.5, Math.log10(1 + rate) * 0.9) + (guilty ? 1 : 0)).toFixed(1));
		const share = flow.capacity_messages ? Math.min(1, flow.depth_messages / flow.capacity_messages) : 0;
		set(f.fill, "width", (40 * share).toFixed(1));
		set(f.gauge, "opacity", flow.capacity_messages ? 1 : 0);
	}

	function update(app, options) {
		const signature = app.application + "\n" + app.operators.map((o) =>
			o.name + "@" + ((app.hosts[o.host_index] || {}).worker || "")).join("\n") + "\n" +
			app.flows.map(flowKey).join("\n");
		const now = performance.now();
		/* The busiest of many change all the time: then those that are drawn stay for a while. */
		const stays = picture && app.operators_left_out && picture.application === app.application &&
			now - picture.at < 15000;
		if (!picture || (picture.signature !== signature && !stays)) {
			build(app, signature);
			picture.application = app.application;
			picture.at = now;
			look(app.cause.operator);
		}
		const many = picture.plan.ops.length > MANY;
		picture.options = options;
		for (const op of app.operators) {
			const o = picture.ops.get(op.name);
			if (o) updateOp(o, op, app, options, many);
		}
		for (const flow of app.flows) {
			const f = picture.flows.get(flowKey(flow));
			if (f) updateFlow(f, flow, app, options, many);
		}
		set(svg, "aria-label", "Graph of " + app.application + ": " + app.operators.length + " operators, " +
			app.flows.length + " flows. Arrow keys move, Enter opens.");
	}

	/* --- what is seen of it --- */

	function place() {
		if (!picture) return;
		const { width, height } = picture.plan, wide = svg.clientWidth || svg.parentNode.clientWidth || 800;
		const most = Math.max(220, window.innerHeight * (window.innerWidth < 641 ? 0.5 : 0.6));
		const pad = 14;
		if (fitted) {
			view.k = Math.min(1.15, (wide - 2 * pad) / width, Math.max((most - 2 * pad) / height, 0.05));
			/* Of a small graph the names can always be read. */
			if (picture.plan.ops.length <= MANY) view.k = Math.max(view.k, 0.74);
			view.x = Math.max(pad, (wide - width * view.k) / 2);
			view.y = pad;
		}
		const tall = Math.max(150, Math.min(most, height * view.k + 2 * pad));
		svg.style.height = tall + "px";
		if (fitted && height * view.k + 2 * pad < tall) view.y = (tall - height * view.k) / 2;
		picture.g.setAttribute("transform", `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)}) scale(${view.k.toFixed(4)})`);
		if (svg.classList.toggle("far", view.k < 0.42) !== picture.isFar) {
			picture.isFar = !picture.isFar;
			if (picture.options) handlers.redraw();
		}
	}
	const isFar = () => picture.isFar;

	function zoom(by, x, y) {
		const wide = svg.clientWidth, k = Math.min(3, Math.max(0.03, view.k * by));
		x = x === undefined ? wide / 2 : x;
		y = y === undefined ? svg.clientHeight / 2 : y;
		view.x = x - (x - view.x) * k / view.k;
		view.y = y - (y - view.y) * k / view.k;
		view.k = k;
		fitted = false;
		place();
	}

	function fitAll() {
		fitted = true;
		place();
	}

	function show(o) {
		const x = o.x * view.k + view.x, y = o.y * view.k + view.y;
		const w = svg.clientWidth - CARD.w * view.k - 20, h = svg.clientHeight - CARD.h * view.k - 20;
		if (x >= 20 && x <= w && y >= 20 && y <= h) return;
		view.x -= x < 20 ? x - 20 : x > w ? x - w : 0;
		view.y -= y < 20 ? y - 20 : y > h ? y - h : 0;
		fitted = false;
		place();
	}

	let dragged = false, grip = null;
	svg.addEventListener("pointerdown", (event) => {
		if (event.button) return;
		grip = { x: event.clientX, y: event.clientY, vx: view.x, vy: view.y };
		dragged = false;
	});
	window.addEventListener("pointermove", (event) => {
		if (!grip) return;
		const dx = event.clientX - grip.x, dy = event.clientY - grip.y;
		if (!dragged && Math.hypot(dx, dy) < 5) return;
		dragged = true;
		fitted = false;
		svg.classList.add("dragged");
		view.x = grip.vx + dx;
		view.y = grip.vy + (event.pointerType === "touch" ? 0 : dy);
		place();
	});
	const release = () => { grip = null; svg.classList.remove("dragged"); };
	window.addEventListener("pointerup", release);
	window.addEventListener("pointercancel", release);
	svg.addEventListener("wheel", (event) => {
		if (!event.ctrlKey && !event.metaKey) return;
		event.preventDefault();
		const at = svg.getBoundingClientRect();
		zoom(Math.exp(-event.deltaY / 300), event.clientX - at.left, event.clientY - at.top);
	}, { passive: false });
	window.addEventListener("resize", place);

	/* --- keys --- */

	function focus(o) {
		if (picture.current) picture.current.g.setAttribute("tabindex", -1);
		picture.current = o;
		o.g.setAttribute("tabindex", 0);
		show(o);
		o.g.focus({ preventScroll: false });
	}

	/* The nearest card on that side: along a column by distance, else the nearest column first. */
	function neighbour(from, key) {
		const across = key === "ArrowLeft" || key === "ArrowRight", sign = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
		let best = null, least = Infinity;
		for (const o of picture.ops.values()) {
			const dx = o.x - from.x, dy = o.y - from.y;
			if (o === from || (across ? dx : dy) * sign <= 0 || (!across && dx !== 0)) continue;
			const far = across ? Math.abs(dx) * 8 + Math.abs(dy) : Math.abs(dy);
			if (far < least) [best, least] = [o, far];
		}
		return best;
	}

	svg.addEventListener("keydown", (event) => {
		const o = picture && picture.current;
		if (!o || event.ctrlKey || event.metaKey || event.altKey) return;
		if (event.key === "Enter" || event.key === " ") handlers.open(o.name);
		else if (event.key.startsWith("Arrow")) {
			const to = neighbour(o, event.key);
			if (to) focus(to);
		} else return;
		event.preventDefault();
	});

	function look(name) {
		const o = picture && picture.ops.get(name);
		if (o) show(o);
	}
	function reveal(name) {
		const o = picture && picture.ops.get(name);
		if (o) focus(o);
	}
	function clear() {
		picture = null;
		svg.replaceChildren();
	}

	return { update, zoom, fitAll, look, reveal, clear, flowKey, USES, on: (h) => { handlers = h; } };
})();
