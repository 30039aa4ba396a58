/* SPDX-License-Identifier: Apache-2.0 */
"use strict";
/*
 * Each event of /data is all that is known at a moment: the documents of fragctl top, list and
 * workers. It is drawn as a whole; only what differs is touched. Texts are only ever set as text.
 */
const $ = (id) => document.getElementById(id);
const USE_SHORT = { busy: "busy", thread: "thread", memory: "memory", room: "room", input: "input", time: "time", suspended: "off" };
const USE_WORDS = {
	busy: "computes", thread: "waits for a thread", memory: "waits for memory", room: "waits for room",
	input: "waits for messages", time: "waits for a time", suspended: "does not run",
};
const LATE_WORDS = {
	queue: "waited in queue", compute: "computed long", preempted: "was preempted", thread: "no thread", pool: "pool empty",
	window: "window closed", network: "network", gpu: "GPU queue", restart: "restart", clock: "clock unsure",
};
const now = { frame: null, app: "", open: null, tab: "operators", sort: {}, most: {}, filter: "", held: null, stale: "" };

/* --- texts --- */

function element(name, attributes, ...children) {
	const e = document.createElement(name);
	for (const key in attributes) {
		if (key === "on") e.addEventListener("click", attributes.on);
		else if (attributes[key] !== null && attributes[key] !== undefined) e.setAttribute(key, attributes[key]);
	}
	e.append(...children.filter((c) => c !== null && c !== undefined));
	return e;
}
const write = (e, text) => { if (e._text !== text) e.textContent = e._text = text; };

const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
function amount(x) {
	if (x >= 1e9) return (x / 1e9).toFixed(1) + " G";
	if (x >= 1e6) return (x / 1e6).toFixed(1) + " M";
	if (x >= 1e4) return (x / 1e3).toFixed(1) + " k";
	return (x >= 100 || x === 0 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toPrecision(2)).replace(/\.0+$/, "");
}
const bytes = (x) => amount(x) + (/ /.test(amount(x)) ? "B" : " B");
function time(ns) {
	if (ns < 1e3) return ns.toFixed(0) + " ns";
	if (ns < 1e6) return (ns / 1e3).toPrecision(3) + " \u00b5s";
	if (ns < 1e9) return (ns / 1e6).toPrecision(3) + " ms";
	return ns < 1e11 ? (ns / 1e9).toPrecision(3) + " s" : (ns / 1e9).toFixed(0) + " s";
}
function age(ns) {
	const s = Math.floor(ns / 1e9);
	return s < 100 ? s + " s" : s < 6000 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" :
		Math.floor(s / 86400) + " d";
}
const clock = (unixNs) => new Date(unixNs / 1e6).toLocaleTimeString([], { hour12: false });
const rate = (app, n) => app.window_ns ? n * 1e9 / app.window_ns : 0;
const share = (app, ns) => app.window_ns ? Math.min(100, ns * 100 / app.window_ns) : 0;
const drops = (f) => Object.keys(f).reduce((s, k) => s + (k.startsWith("dropped_") && k !== "dropped_sum" ? f[k] : 0), 0);
const isGuilty = (app) => !["none", "unmeasured"].includes(app.cause.kind);

function opWords(app, op) {
	const uses = Graph.USES.map((u) => [u, share(app, op[u + "_ns"])]).filter(([, p]) => p >= 0.5).sort((a, b) => b[1] - a[1]);
	const most = uses.length ? `${USE_SHORT[uses[0][0]]} ${uses[0][1].toFixed(0)} %` : "";
	const ticks = amount(rate(app, op.ticks)) + " /s";
	return {
		short: op.has_ended ? "has ended" : app.window_ns ? ticks : "", most: op.has_ended ? "" : most,
		long: `${op.type}, ${ticks.replace("/s", "ticks a second")}` + uses.map(([u, p]) => `, ${USE_WORDS[u]} ${p.toFixed(0)} %`).join("") +
			(op.has_ended ? ", has ended" : ""),
	};
}
function flowWords(app, f) {
	const sent = amount(rate(app, f.sent)) + " /s", dropped = drops(f);
	const minus = dropped ? `, drops ${amount(rate(app, dropped))} /s` : "";
	return {
		short: app.window_ns ? sent + minus : "",
		long: `${f.from} -> ${f.to}\n${sent}${minus}, ${f.depth_messages} of ${f.capacity_messages} in flight, ` +
			`${share(app, f.full_ns).toFixed(0)} % of the time without room`,
	};
}

/* --- what was: seconds of the last two minutes, and five of them at a time of the last hour --- */

const SPANS = [{ step: 1, count: 120, name: "2 min" }, { step: 5, count: 720, name: "1 hour" }];
const SERIES_MAX = 1500;
const history = new Map();
class Series {
	constructor(width) {
		this.width = width;
		this.spans = SPANS.map((s) => ({ ...s, at: new Float64Array(s.count), of: new Uint16Array(s.count),
			values: new Float32Array(s.count * width) }));
	}
	add(seconds, values) {
		for (const span of this.spans) {
			const bucket = Math.floor(seconds / span.step), i = bucket % span.count;
			if (span.at[i] !== bucket) {
				span.at[i] = bucket;
				span.of[i] = 0;
			}
			const n = ++span.of[i];
			values.forEach((v, k) => {
				const j = i * this.width + k;
				span.values[j] = n === 1 ? v : span.values[j] + (v - span.values[j]) / n;
			});
		}
	}
	/* Calls with each bucket from the oldest on: its index, and its values or null. */
	each(span, seconds, call) {
		const last = Math.floor(seconds / span.step);
		for (let n = 0; n < span.count; n++) {
			const bucket = last - span.count + 1 + n, i = ((bucket % span.count) + span.count) % span.count;
			call(n, span.at[i] === bucket ? span.values.subarray(i * this.width, (i + 1) * this.width) : null);
		}
	}
}
function note(key, width, seconds, values) {
	let series = history.get(key);
	if (!series) {
		if (history.size >= SERIES_MAX) history.delete(history.keys().next().value);
		history.set(key, series = new Series(width));
	}
	series.add(seconds, values);
}
function remember(frame) {
	if (frame.driver.lost) return;
	for (const app of frame.top.applications) {
		if (!app.window_ns) continue;
		const s = app.unix_ns / 1e9;
		for (const op of app.operators)
			note(app.application + "\n" + op.name, 9, s, [...Graph.USES.map((u) => share(app, op[u + "_ns"])),
				rate(app, op.ticks), op.compute_p99_ns]);
		for (const f of app.flows)
			note(app.application + "\n" + Graph.flowKey(f), 4, s, [rate(app, f.sent), share(app, f.full_ns),
				f.depth_messages, f.latency_p99_ns]);
	}
}

function chart(canvas, key, span, kind) {
	const series = history.get(key), style = getComputedStyle(document.documentElement);
	const color = (name) => style.getPropertyValue("--" + name).trim();
	const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth || 380, h = canvas.clientHeight || 96;
	canvas.width = w * ratio;
	canvas.height = h * ratio;
	const g = canvas.getContext("2d"), seconds = now.seconds || 0;
	g.scale(ratio, ratio);
	if (!series) return 0;
	const s = series.spans[span], step = w / s.count;
	if (kind === "uses") {
		series.each(s, seconds, (n, v) => {
			if (!v) return;
			let y = h;
			Graph.USES.forEach((use, k) => {
				const tall = v[k] * h / 100;
				g.fillStyle = color(use);
				g.fillRect(Math.round(n * step), y - tall, Math.round((n + 1) * step) - Math.round(n * step), tall);
				y -= tall;
			});
		});
		return 100;
	}
	let most = 0;
	series.each(s, seconds, (n, v) => { if (v) most = Math.max(most, v[kind]); });
	g.strokeStyle = color("accent");
	g.lineWidth = 1.5;
	g.beginPath();
	let draws = false;
	series.each(s, seconds, (n, v) => {
		if (!v) { draws = false; return; }
		const x = n * step, y = h - 4 - (most ? v[kind] / most * (h - 10) : 0);
		if (draws) g.lineTo(x, y);
		else g.moveTo(x - step, y), g.lineTo(x, y);
		draws = true;
	});
	g.stroke();
	return most;
}

/* --- tables --- */

const appNow = () => now.frame && now.frame.top.applications.find((a) => a.application === now.app);
const rowNow = () => now.frame && now.frame.list.applications.find((a) => a.name === now.app);
const text = (key, title, of) => ({ key, title, of, text: (v) => v === null ? "" : String(v) });
const wide = (key, title, of) => ({ ...text(key, title, of), wide: true });
const number = (key, title, of, show, hint) => ({ key, title, of, text: show || grouped, number: true, hint });
const percent = (key, title, ns) => number(key, title, (r, a) => share(a, r[ns]), (v) => v.toFixed(0), "per cent of the time");
const perSecond = (key, title, of) => number(key, title, (r, a) => rate(a, of(r)), amount);
const duration = (key, title, of) => number(key, title, of, (v) => v === null ? "" : time(v));

/* "fragment1.frames 3 of 4, empty 20 %" */
const poolsOf = (app, host) => (app.pools || []).filter((p) => app.hosts[p.host_index] === host).map((p) =>
	`${p.name} ` + (p.block_bytes === 1 ? `${bytes(p.used_blocks)} of ${bytes(p.blocks)}` : `${p.used_blocks} of ${p.blocks}`) +
	(p.empty_ns ? `, empty ${share(app, p.empty_ns).toFixed(0)} %` : "") +
	(p.refused_sum ? `, refused ${grouped(p.refused_sum)}` : "")).join("; ");
const TABLES = {
	operators: {
		title: "Operators", rows: () => (appNow() || {}).operators, name: (r) => r.name, key: (r) => r.name,
		open: (r) => openOp(r.name), guilty: (r, a) => isGuilty(a) && a.cause.operator === r.name,
		columns: [text("type", "Type", (r) => r.type), perSecond("ticks", "Ticks /s", (r) => r.ticks),
			percent("busy", "Busy %", "busy_ns"), percent("input", "Input %", "input_ns"), percent("room", "Room %", "room_ns"),
			percent("memory", "Memory %", "memory_ns"), percent("thread", "Thread %", "thread_ns"),
			percent("time", "Time %", "time_ns"), percent("suspended", "Off %", "suspended_ns"),
			duration("p50", "p50", (r) => r.compute_p50_ns), duration("p99", "p99", (r) => r.compute_p99_ns),
			duration("max", "max", (r) => r.compute_max_ns), number("count", "Ticks", (r) => r.compute_count)],
	},
	flows: {
		title: "Flows", rows: () => (appNow() || {}).flows, name: (r) => r.from + " \u2192 " + r.to, key: Graph.flowKey,
		open: (r) => openFlow(Graph.flowKey(r)),
		guilty: (r, a) => isGuilty(a) && a.cause.from === r.from && a.cause.to === r.to,
		columns: [perSecond("rate", "Sent /s", (r) => r.sent), number("bytes", "Bytes /s", (r, a) => rate(a, r.bytes), bytes),
			percent("full", "Full %", "full_ns"), number("depth", "In flight", (r) => r.depth_messages),
			number("capacity", "Capacity", (r) => r.capacity_messages), number("sent", "Sent", (r) => r.sent_sum),
			number("delivered", "Delivered", (r) => r.delivered_sum), number("dropped", "Dropped", (r) => r.dropped_sum),
			number("lost", "Lost", (r) => r.lost_sum), duration("p99", "p99", (r) => r.latency_p99_ns),
			text("edge", "Edge", (r) => r.edge), text("policy", "Policy", (r) => r.policy)],
	},
	hosts: {
		title: "Processes", rows: () => (appNow() || {}).hosts, name: (r) => r.name, key: (r) => r.name,
		guilty: (r, a) => isGuilty(a) && !a.cause.operator && !a.cause.from && a.cause.host === r.name,
		columns: [text("worker", "Worker", (r) => r.worker), number("pid", "Process", (r) => r.pid, String),
			number("epoch", "Epoch", (r) => r.epoch), number("restarts", "Restarts", (r) => r.restarts),
			number("threads", "Threads", (r) => r.threads), number("cores", "Cores", (r) => r.cores),
			percent("cpu", "CPU %", "cpu_ns"), percent("late", "Late %", "starved_ns"), percent("disk", "Disk %", "io_ns"),
			number("rss", "Memory", (r) => r.rss_bytes, bytes),
			wide("pools", "Pools: blocks in use", (r, a) => poolsOf(a, r)),
			wide("off", "Suspended because", (r) => r.suspended_because)],
	},
	workers: {
		title: "Workers", rows: () => now.frame && now.frame.workers.workers, name: (r) => r.name, key: (r) => r.name,
		columns: [text("state", "State", (r) => r.drained ? r.state + ", drained" : r.state), text("address", "Address", (r) => r.address),
			number("cores", "Cores", (r) => r.cores), number("fragments", "Fragments", (r) => r.fragments),
			wide("waits", "Notes", (r) => r.waits_for ? "can run nothing yet: " + r.waits_for :
				r.away_ns ? `${r.state} ${age(r.away_ns)} ago` + (r.ran ? "; it ran " + r.ran : "") : "")],
		tools: (r) => [r.drained ? "Undrain" : "Drain", () => drainWorker(r)],
	},
	runs: {
		title: "Ended", rows: () => now.frame && now.frame.list.ended, name: (r) => r.name, key: (r) => r.run,
		guilty: (r) => r.result === "failed",
		columns: [text("result", "Result", (r) => r.result), number("run", "Run", (r) => r.run),
			number("code", "Exit code", (r) => r.exit_code), duration("took", "Took", (r) => r.duration_ns),
			number("ago", "Ago", (r) => r.age_ns, age), text("by", "Started by", (r) => r.started_by),
			wide("why", "Failure", (r) => r.failure ? r.failure.sentence : "")],
		tools: (r) => [now.frame.list.applications.some((a) => a.name === r.name) ? "" : "Start again",
			() => command(`Start ${r.name} again, as it was started before?`, "Start", "/restart", r.name)],
	},
	events: {
		title: "Events", rows: () => events.rows, name: (r) => clock(r.unix_ns), key: (r) => r.number, newest: true, first: "Time",
		columns: [text("kind", "What", (r) => r.kind.replace(/_/g, " ")), text("app", "Application", (r) => r.application),
			wide("text", "Text", (r) => r.text), text("who", "Who", (r) => r.who)],
	},
	graphs: {
		title: "Graphs", rows: () => graphs.rows, name: (r) => r, key: (r) => r, first: "File", columns: [],
		tools: (r) => ["Start", () => command(`Start the application of ${r}?`, "Start", "/start", r)],
	},
};
const ORDER = Object.keys(TABLES), ROWS_SHOWN = 60;
const tabsNow = () => ORDER.filter((key) => key !== "graphs" || (now.frame && now.frame.driver.graphs));

function sortRows(rows, table, app) {
	const sort = now.sort[now.tab];
	if (!sort) return table.newest ? [...rows].reverse() : rows;
	const of = sort.key === "name" ? table.name : table.columns.find((c) => c.key === sort.key).of;
	const value = (r) => { const v = of(r, app); return v === null || v === undefined ? "" : v; };
	const sign = sort.down ? -1 : 1;
	return [...rows].sort((a, b) => { const x = value(a), y = value(b); return x < y ? -sign : x > y ? sign : 0; });
}

function headCell(table, column) {
	const key = column ? column.key : "name", sort = now.sort[now.tab];
	const th = element("th", { scope: "col", class: column && column.number ? "number" : null, title: column && column.hint });
	if (sort && sort.key === key) th.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
	th.append(element("button", { on: () => {
		const was = now.sort[now.tab];
		now.sort[now.tab] = was && was.key === key ? (was.down ? { key, down: false } : null) : { key, down: true };
		drawn.head = "";
		draw();
		$("table").querySelector(`[data-key="${key}"]`).focus();
	}, "data-key": key }, column ? column.title : table.first || "Name"));
	return th;
}

const drawn = { head: "", rows: new Map() };
function newRow(table, row) {
	const name = table.open ? element("button", { on: () => drawn.rows.get(table.key(row)) && table.open(drawn.rows.get(table.key(row)).row) }) :
		document.createTextNode("");
	const tr = element("tr", {}, element("th", { scope: "row" }, name));
	const cells = table.columns.map((c) => tr.appendChild(element("td", { class: c.number ? "number" : c.wide ? "text" : null })));
	let tools = null;
	if (table.tools && now.frame.driver.controls) tools = tr.appendChild(element("td", {}));
	return { tr, name, cells, tools, row };
}
function drawTable() {
	const table = TABLES[now.tab], app = appNow(), place = $("table");
	const needs = ["operators", "flows", "hosts"].includes(now.tab);
	let rows = table.rows() || [];
	rows = rows.filter((r) => !now.filter || JSON.stringify([table.name(r), ...table.columns.map((c) => c.wide ? c.of(r, app) : "")])
		.toLowerCase().includes(now.filter));
	rows = sortRows(rows, table, app);
	const all = rows.length;
	if (!now.most[now.tab]) rows = rows.slice(0, ROWS_SHOWN);
	const controls = now.frame && now.frame.driver.controls, head = [now.tab, now.app, JSON.stringify(now.sort), controls].join("\n");
	if (drawn.head !== head) {
		drawn.head = head;
		drawn.rows.clear();
		drawn.body = element("tbody", {});
		drawn.none = element("p", { class: "none" });
		drawn.more = element("button", { on: () => { now.most[now.tab] = Infinity; draw(); } });
		place.replaceChildren(element("table", {}, element("caption", { hidden: "" }, table.title),
			element("thead", {}, element("tr", {}, headCell(table, null), ...table.columns.map((c) => headCell(table, c)),
				table.tools && controls ? element("th", {}) : null)), drawn.body), drawn.none,
			element("p", { class: "more" }, drawn.more));
		place.setAttribute("aria-labelledby", "tab-" + now.tab);
	}
	const kept = new Set(rows.map(table.key)), stays = drawn.body.contains(document.activeElement);
	for (const [key, r] of drawn.rows)
		if (!kept.has(key)) {
			r.tr.remove();
			drawn.rows.delete(key);
		}
	rows.forEach((row, i) => {
		const key = table.key(row);
		let r = drawn.rows.get(key);
		if (!r) drawn.rows.set(key, r = newRow(table, row));
		r.row = row;
		write(r.name, table.name(row));
		table.columns.forEach((c, k) => {
			const v = c.of(row, app || {});
			write(r.cells[k], c.text(v));
			if (c.number) r.cells[k].classList.toggle("zero", v === 0);
		});
		r.tr.className = table.guilty && table.guilty(row, app || {}) ? "guilty" : "";
		if (r.tools) {
			const [label, act] = table.tools(row);
			if (r.tools.textContent !== label) r.tools.replaceChildren(...(label ? [element("button", { on: act }, label)] : []));
		}
		/* A row that moved would lose the focus. */
		if (drawn.body.children[i] !== r.tr && !(stays && r.tr.parentNode)) drawn.body.insertBefore(r.tr, drawn.body.children[i] || null);
	});
	drawn.none.hidden = rows.length > 0;
	drawn.more.parentNode.hidden = rows.length === all;
	write(drawn.more, `Show all ${all}`);
	write(drawn.none, now.filter ? "No name contains that." : needs && !app ? ((rowNow() || {}).state === "running" ? "It is being measured." : "The application does not run.") : "Nothing yet.");
}
function drawTabs() {
	const tabs = $("tabs");
	if (!tabs.children.length)
		for (const key of ORDER)
			tabs.append(element("button", { role: "tab", id: "tab-" + key, "aria-controls": "table", hidden: "", on: () => chooseTab(key) }, TABLES[key].title));
	for (const key of tabsNow()) {
		const tab = $("tab-" + key), on = key === now.tab, rows = TABLES[key].rows();
		tab.hidden = false;
		tab.setAttribute("aria-selected", on);
		tab.tabIndex = on ? 0 : -1;
		write(tab, TABLES[key].title + (rows && rows.length && key !== "events" ? " " + rows.length : ""));
	}
}
function chooseTab(key) {
	if (!tabsNow().includes(key)) return;
	now.tab = key;
	if (key === "graphs") askGraphs();
	draw();
}
$("tabs").addEventListener("keydown", (event) => {
	const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
	if (!step) return;
	const tabs = tabsNow();
	chooseTab(tabs[(tabs.indexOf(now.tab) + step + tabs.length) % tabs.length]);
	$("tab-" + now.tab).focus();
	event.preventDefault();
	event.stopPropagation();
});

/* --- the top of the page --- */

/* What the address names: application, kind and name of what is open. */
function linked() {
	try {
		return location.hash.slice(1).split("/").map(decodeURIComponent);
	} catch {
		return []; /* somebody else has made it */
	}
}
function stateOf(name) {
	const row = now.frame.list.applications.find((a) => a.name === name);
	return row ? row.state : "ended";
}
function drawApps() {
	const nav = $("apps"), names = [...new Set([...now.frame.list.applications.map((a) => a.name),
		...now.frame.top.applications.map((a) => a.application)])];
	if (!names.includes(now.app) && names.length) {
		const slow = now.frame.top.applications.find(isGuilty), [wished, kind, key] = linked();
		choose(names.includes(wished) ? wished : slow ? slow.application : names[0], true);
		if (wished === now.app && key) setTimeout(open, 0, kind === "flow" ? kind : "operator", key);
	}
	const old = new Map([...nav.children].map((b) => [b.dataset.name, b]));
	names.forEach((name, i) => {
		let b = old.get(name);
		old.delete(name);
		if (!b) {
			b = element("button", { on: () => choose(name) }, element("span", {}, name), element("span", { class: "state" }));
			b.dataset.name = name;
		}
		const app = now.frame.top.applications.find((a) => a.application === name), wrong = app && isGuilty(app);
		b.setAttribute("aria-current", name === now.app);
		b.className = wrong ? "wrong" : "";
		write(b.lastChild, wrong ? "! " + stateOf(name) : stateOf(name));
		if (nav.children[i] !== b) nav.insertBefore(b, nav.children[i] || null);
	});
	for (const b of old.values()) b.remove();
}
function choose(name, silently) {
	if (now.app !== name) {
		now.app = name;
		close();
		Graph.clear();
		logs.key = "";
	}
	if (!silently) draw();
}

function drawTrouble() {
	const lost = now.frame && now.frame.driver.lost, live = $("live");
	const why = now.stale || (lost ? lost + ". What is below is old; the driver is looked for every second." : "");
	$("trouble").hidden = !why;
	write($("trouble"), why);
	document.body.classList.toggle("stale", Boolean(why));
	live.className = why || now.held ? "off" : "";
	write(live, now.stale ? "no answer" : lost ? "no driver" : now.held ? "held" : now.frame ? now.frame.driver.address : "");
}

function drawCause(app) {
	const box = $("cause"), row = rowNow();
	const kind = !app || !app.window_ns ? "" : isGuilty(app) ? "wrong" : "fine";
	box.className = kind;
	let sentence = app ? app.cause.sentence : "";
	if (!app && !row) sentence = now.frame.driver.lost ? "The driver is not there." : "Nothing runs.";
	else if (row && row.waits_for) sentence = `${now.app} waits for ${row.waits_for}.`;
	else if (!app || !app.window_ns) sentence = `${now.app} is being measured.`;
	write($("sentence"), sentence);
	/* Its numbers change all the time: it is read aloud when what is to blame does. */
	const blamed = [now.app, kind, app && app.cause.operator, app && app.cause.from].join("\n");
	if (now.blamed !== blamed) write($("announced"), now.app + ": " + sentence);
	now.blamed = blamed;
	const known = app && (app.cause.help || app.cause.chain.length) && kind === "wrong";
	$("why").hidden = !known;
	$("cause-go").hidden = !(kind === "wrong" && (app.cause.operator || app.cause.from));
	if (!known) return;
	if ($("chain").dataset.text !== app.cause.chain.join("\n")) {
		$("chain").dataset.text = app.cause.chain.join("\n");
		$("chain").replaceChildren(...app.cause.chain.map((c) => element("li", {}, c)));
	}
	write($("help"), app.cause.help || "");
}
function showCause() {
	const app = appNow();
	if (!app) return;
	if (app.cause.operator) openOp(app.cause.operator);
	else if (app.cause.from) openFlow(app.cause.from + " -> " + app.cause.to);
}

function drawMap(app, row) {
	const has = Boolean(app && app.operators.length);
	$("map").hidden = !row && !app;
	$("canvas").hidden = !has;
	$("empty").hidden = Boolean(row || app || now.frame.driver.lost);
	write($("title"), now.app);
	write($("facts"), row ? [row.state, "run " + row.run, "for " + age(row.age_ns), grouped(row.delivered) + " messages",
		row.started_by ? "by " + row.started_by : ""].filter(Boolean).join("  \u00b7  ") : "");
	$("controls").hidden = !now.frame.driver.controls || !row;
	const out = app ? [[app.operators_left_out, "operators"], [app.flows_left_out, "flows"]].filter(([n]) => n) : [];
	$("left-out").hidden = !out.length;
	write($("left-out"), out.length ? `The busiest ${app.operators.length} operators are shown; ` +
		out.map(([n, what]) => `${grouped(n)} ${what}`).join(" and ") + " that do less are left out." : "");
	if (has)
		Graph.update(app, {
			words: (op) => opWords(app, op), flowWords: (f) => flowWords(app, f),
			matches: (name) => !now.filter || name.toLowerCase().includes(now.filter),
			selected: now.open ? now.open.key : "",
		});
}

/* --- details --- */

function open(kind, key) {
	now.open = { kind, key };
	panel.key = "";
	history_span = 0;
	logs.key = "";
	$("panel").hidden = false;
	document.body.classList.add("opened");
	location.replace("#" + [now.app, kind, key].map(encodeURIComponent).join("/"));
	draw();
	$("panel").focus();
	Graph.fitAll();
	if (kind === "operator") Graph.look(key);
}
const openOp = (name) => open("operator", name), openFlow = (key) => open("flow", key);
function close() {
	if (!now.open) return;
	const was = now.open;
	now.open = null;
	$("panel").hidden = true;
	document.body.classList.remove("opened");
	location.replace("#" + encodeURIComponent(now.app));
	draw();
	Graph.fitAll();
	if (was.kind === "operator") Graph.reveal(was.key);
	else $("main").focus();
}

const panel = { key: "" };
let history_span = 0;
function figure(title, kind, unit) {
	const canvas = element("canvas", { class: "chart", role: "img" }), most = element("span", {}), from = element("span", {});
	return { canvas, kind, unit, most, from, title,
		nodes: [element("h3", {}, title), canvas, element("p", { class: "axis" }, from, most)] };
}
function pairs() {
	const dl = element("dl", {}), cells = new Map();
	return { dl, set(list) {
		for (const [name, value] of list) {
			if (!cells.has(name)) {
				const dd = element("dd", {});
				cells.set(name, dd);
				dl.append(element("dt", {}, name), dd);
			}
			write(cells.get(name), value);
		}
	} };
}
function buildPanel(kind) {
	const body = $("panel-body");
	panel.lead = element("p", { class: "lead" });
	panel.spans = SPANS.map((s, i) => element("button", { "aria-pressed": i === history_span, on: () => { history_span = i; panel.key = ""; draw(); } }, s.name));
	panel.pairs = pairs();
	panel.figures = kind === "operator" ? [figure("Where its time went", "uses", "%"), figure("Ticks a second", 7, "/s"), figure("p99 of a tick, since its start", 8, "ns")] :
		[figure("Messages a second", 0, "/s"), figure("Per cent of the time without room", 1, "%"), figure("Messages in flight", 2, ""), figure("p99 of the latency, since the start", 3, "ns")];
	panel.uses = kind === "operator" ? Graph.USES.map((u) => ({ u, value: element("b", {}) })) : [];
	panel.passed = { canvas: element("canvas", { role: "img", "aria-label": "The picture in a message" }), caption: element("figcaption", { class: "soft" }),
		text: element("p", { class: "log passed" }, "Nothing yet.") };
	panel.passed.figure = element("figure", { class: "picture", hidden: "" }, panel.passed.canvas, panel.passed.caption);
	panel.links = element("ul", { class: "links" });
	panel.changed = pairs();
	panel.log = element("div", { class: "log", tabindex: 0, role: "log", "aria-label": "Log" });
	panel.none = element("p", { class: "soft" });
	body.replaceChildren(panel.lead,
		element("h3", {}, "Now"), panel.pairs.dl,
		...(kind === "flow" ? [element("h3", {}, "What passes, once a second"), panel.passed.figure, panel.passed.text] : []),
		...(kind === "operator" ? [element("h3", {}, "Its time in this window"), element("div", { class: "uses" },
			...panel.uses.flatMap(({ u, value }) => [element("i", { class: "use-" + u }), element("span", {}, USE_WORDS[u]), value]))] : []),
		element("p", { class: "past" }, element("span", { class: "soft" }, "What was, while this page was open"), element("span", { class: "tools" }, ...panel.spans)),
		...panel.figures.flatMap((f) => f.nodes),
		element("h3", {}, kind === "operator" ? "Its flows" : "Its ends"), panel.links,
		element("h3", {}, "Parameters set while it runs"), panel.none, panel.changed.dl,
		...(kind === "operator" && now.frame.driver.controls ? [setForm()] : []),
		element("h3", {}, "Log"), panel.log);
}
function setForm() {
	const input = element("input", { "aria-label": "PARAMETER=VALUE", placeholder: "PARAMETER=VALUE", spellcheck: "false" });
	const form = element("form", { class: "set" }, input, element("button", {}, "Set"));
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		const what = now.open.key + "." + input.value.trim();
		if (input.value.includes("=")) command(`Set ${what} of ${now.app} now?`, "Set", "/set", now.app + "\n" + what);
	});
	return form;
}
function drawLinks(list) {
	const text = JSON.stringify(list.map((l) => l.slice(0, 3)));
	if (panel.links.dataset.text === text) return;
	panel.links.dataset.text = text;
	panel.links.replaceChildren(...list.map(([label, value, guilty, act]) =>
		element("li", {}, element("button", { class: guilty ? "guilty" : null, on: act }, element("span", {}, label), element("span", { class: "soft" }, value)))));
}
// Causes that are about the flow that leads to a place.
const LATE_FLOW = ["window", "network", "restart"];
function lateRows(op) {
	const left = { ...op.late }, rows = [];
	for (const { from, at, worker, late } of op.late_places)
		for (const [cause, n] of Object.entries(late)) {
			const place = from !== null && LATE_FLOW.includes(cause) ? from + " \u2192 " + at : worker !== null ? at + " on " + worker : at;
			rows.push([place + " " + LATE_WORDS[cause], n]);
			left[cause] -= n;
		}
	for (const [cause, n] of Object.entries(left)) if (n > 0) rows.push([LATE_WORDS[cause], n]);
	return rows.sort((a, b) => b[1] - a[1]);
}
function drawOpPanel(app, op) {
	const host = app.hosts[op.host_index] || {}, guilty = isGuilty(app) && app.cause.operator === op.name;
	panel.lead.className = "lead" + (guilty ? " wrong" : "");
	write(panel.lead, guilty ? "This is to blame: " + app.cause.sentence : op.type + (host.worker ? " on " + host.worker : ""));
	panel.pairs.set([["ticks a second", amount(rate(app, op.ticks))], ["ticks since its start", grouped(op.compute_count)],
		["half of its ticks below", time(op.compute_p50_ns)], ["99 % below", time(op.compute_p99_ns)],
		["99.9 % below", time(op.compute_p999_ns)], ["the longest", time(op.compute_max_ns)],
		...(op.promised_mhz ? [["promised ticks a second", amount(op.promised_mhz / 1000)]] : []),
		...(op.budget_ns ? [["budget of a tick", time(op.budget_ns)]] : []),
		...(op.period_ns ? [["period", time(op.period_ns)]] : []),
		...(op.pool ? [["waits longest for pool", op.pool]] : []),
		...lateRows(op).map(([what, n]) => ["late messages, " + what, grouped(n)]),
		["process", (host.name || "") + (host.pid ? ", " + host.pid : "")]]);
	for (const { u, value } of panel.uses) write(value, share(app, op[u + "_ns"]).toFixed(0) + " %");
	drawLinks(app.flows.filter((f) => [f.sender_index, f.receiver_index].some((i) => i !== null && app.operators[i] === op)).map((f) =>
		[f.from + " \u2192 " + f.to, flowWords(app, f).short, isGuilty(app) && app.cause.from === f.from && app.cause.to === f.to,
			() => openFlow(Graph.flowKey(f))]));
}
function drawFlowPanel(app, f) {
	const guilty = isGuilty(app) && app.cause.from === f.from && app.cause.to === f.to;
	panel.lead.className = "lead" + (guilty ? " wrong" : "");
	write(panel.lead, guilty ? "This is to blame: " + app.cause.sentence : `${f.edge || "not connected"}, policy ${f.policy}`);
	panel.pairs.set([["messages a second", amount(rate(app, f.sent))], ["bytes a second", bytes(rate(app, f.bytes))],
		["in flight", f.depth_messages + " of " + f.capacity_messages], ["time without room", share(app, f.full_ns).toFixed(0) + " %"],
		["sent", grouped(f.sent_sum)], ["delivered", grouped(f.delivered_sum)], ["dropped", grouped(f.dropped_sum)], ["lost", grouped(f.lost_sum)],
		...(f.latency_count ? [["half received within", time(f.latency_p50_ns)], ["99 % within", time(f.latency_p99_ns)], ["the longest", time(f.latency_max_ns)]] : []),
		...(f.latency_error_ns ? [["each of them give or take", time(f.latency_error_ns)]] : []),
		...Object.keys(f).filter((k) => k.startsWith("dropped_") && k !== "dropped_sum" && f[k]).map((k) =>
			["dropped in this window, " + k.slice(8).replace(/_/g, " "), grouped(f[k])])]);
	drawLinks([f.sender_index, f.receiver_index].map((i) => app.operators[i]).filter(Boolean).map((o) =>
		[o.name, opWords(app, o).short + "  " + opWords(app, o).most, isGuilty(app) && app.cause.operator === o.name, () => openOp(o.name)]));
}
function drawPanel(app) {
	if (!now.open) return;
	const { kind, key } = now.open;
	const row = app && (kind === "operator" ? app.operators.find((o) => o.name === key) : app.flows.find((f) => Graph.flowKey(f) === key));
	write($("panel-title"), kind === "operator" ? key : key.replace(" -> ", " \u2192 "));
	if (panel.key !== kind + key) {
		panel.key = kind + key;
		buildPanel(kind);
	}
	if (!row) {
		write(panel.lead, "It is not among what runs now.");
		return;
	}
	(kind === "operator" ? drawOpPanel : drawFlowPanel)(app, row);
	for (const f of panel.figures) {
		const most = chart(f.canvas, now.app + "\n" + key, history_span, f.kind);
		write(f.from, SPANS[history_span].name + " ago");
		write(f.most, f.kind === "uses" ? "now" : "at most " + (f.unit === "ns" ? time(most) : amount(most) + " " + f.unit));
		f.canvas.setAttribute("aria-label", f.title + ", over " + SPANS[history_span].name);
	}
	const parameters = ((rowNow() || {}).parameters || []).filter((p) => kind === "operator" ? p.name.startsWith(key + ".") : false);
	panel.changed.set(parameters.map((p) => [p.name.slice(key.length + 1), `${p.value}, ${age(p.age_ns)} ago by ${p.who}`]));
	write(panel.none, parameters.length ? "" : kind === "operator" ? "None; its others are as its graph has them." : "A flow has none.");
}

/* --- what the driver is asked for: events, and the log of what is open --- */

const events = { rows: [], last: 0, busy: false }, logs = { key: "", last: 0, busy: false };
const EVENTS_KEPT = 500, LINES_KEPT = 300;
async function ask(path, query) {
	const reply = await fetch(path + "?" + new URLSearchParams(query));
	if (!reply.ok) throw new Error(String(reply.status));
	return reply.json();
}
async function askEvents() {
	if (events.busy || now.held) return;
	events.busy = true;
	try {
		const { events: rows } = await ask("/events", { after: events.last });
		if (rows.length) {
			events.rows = [...events.rows, ...rows].slice(-EVENTS_KEPT);
			events.last = rows[rows.length - 1].number;
			if (now.tab === "events") drawTable();
		}
	} catch { /* the next time */ }
	events.busy = false;
}
const graphs = { rows: [] };
async function askGraphs() {
	try {
		graphs.rows = (await ask("/graphs", {})).graphs;
		drawTable();
	} catch { /* the next time */ }
}
async function askLogs() {
	if (!now.open || logs.busy || now.held || !rowNow()) return;
	const end = now.open.kind === "operator" ? now.open.key : now.open.key.split(" -> ")[1];
	const fragment = end.split(".")[0], operator = now.open.kind === "operator" ? end.slice(fragment.length + 1) : "";
	const key = [now.app, fragment, operator].join("\n");
	if (logs.key !== key) Object.assign(logs, { key, last: 0 }), panel.log.replaceChildren();
	logs.busy = true;
	try {
		const { last, lines } = await ask("/logs", { application: now.app, fragment, operator, after: logs.last });
		if (logs.key === key) {
			logs.last = last;
			const low = panel.log.scrollHeight - panel.log.scrollTop - panel.log.clientHeight < 20;
			panel.log.append(...lines.map((l) => element("div", { class: l.level }, element("time", {}, clock(l.unix_ns) + " "),
				(["warn", "error"].includes(l.level) ? l.level + " " : "") + l.text)));
			while (panel.log.children.length > LINES_KEPT) panel.log.firstChild.remove();
			if (low) panel.log.scrollTop = panel.log.scrollHeight;
			if (!panel.log.children.length) panel.log.textContent = "It has written nothing.";
			else if (panel.log.firstChild.nodeType === 3) panel.log.firstChild.remove();
		}
	} catch { /* the next time */ }
	logs.busy = false;
}

/* A message of the flow that is open, as fragctl echo shows it; the picture in it is drawn. */
const echo = { key: "", seen: 0, next: 0, busy: false };
function drawPicture(picture) {
	const { figure, canvas, caption } = panel.passed;
	figure.hidden = !picture;
	if (!picture) return;
	const { width, height, channels, step } = picture, bytes = atob(picture.pixels), image = new ImageData(width, height);
	for (let i = 0; i < width * height; i++)
		for (let c = 0; c < 4; c++)
			image.data[4 * i + c] = c === 3 ? 255 : bytes.charCodeAt(i * channels + (channels === 1 ? 0 : c));
	Object.assign(canvas, { width, height });
	canvas.getContext("2d").putImageData(image, 0, 0);
	write(caption, `${picture.tensor}: ${width} x ${height}` + (step > 1 ? `, one of ${step} rows and columns` : ""));
}
function drawPassed(passed) {
	const m = passed.message, json = (v) => JSON.stringify(v), shape = (t) => t && t.shape ? `${t.dtype} [${t.shape.join(", ")}]` : json(t);
	drawPicture(passed.picture);
	write(panel.passed.text, ["#" + grouped(passed.seen), m.type ? `${m.type} ${json(m.value)}` : "",
		Object.keys(m.metadata || {}).length ? "metadata " + json(m.metadata) : "",
		...m.tensors.map((t) => `tensor ${t.name} ${shape(t.tensor)}`)].filter(Boolean).join("\n"));
}
async function askEcho() {
	if (!now.open || now.open.kind !== "flow" || echo.busy || now.held || document.hidden || !appNow()) return;
	const key = now.app + "\n" + now.open.key, passed = panel.passed;
	if (echo.key !== key || echo.of !== passed) Object.assign(echo, { key, of: passed, seen: 0, next: 0 });
	if (performance.now() < echo.next) return;
	echo.busy = true;
	try {
		const reply = await fetch("/echo?" + new URLSearchParams({ application: now.app, flow: now.open.key, seen: echo.seen }));
		const type = reply.headers.get("Content-Type") || "", body = type.includes("json") ? await reply.json() : null;
		if (panel.passed === passed && reply.ok && body) {
			echo.seen = body.seen;
			drawPassed(body);
		} else if (panel.passed === passed && !reply.ok) {
			echo.next = performance.now() + 5000;
			drawPicture(null);
			write(passed.text, body ? body.failure.sentence : await reply.text());
		}
	} catch { /* the next time */ }
	echo.busy = false;
}

/* --- commands --- */

function question(text, yes) {
	write($("ask-text"), text);
	write($("ask-yes"), yes);
	$("ask").returnValue = "no";
	$("ask").showModal();
	$("ask-no").focus();
	return new Promise((answer) => $("ask").addEventListener("close", () => answer($("ask").returnValue === "yes"), { once: true }));
}
async function command(text, yes, path, body) {
	if (!await question(text, yes)) return;
	let sentence = "";
	try {
		const reply = await fetch(path, { method: "POST", headers: { "X-Frag-Page": "1" }, body });
		const type = reply.headers.get("Content-Type") || "";
		if (!reply.ok) sentence = type.includes("json") ? (await reply.json()).failure.sentence : await reply.text();
	} catch {
		sentence = "fragctl web does not answer";
	}
	if (sentence) await question("It was not done: " + sentence, "OK");
	askEvents();
}
const drainWorker = (w) => w.drained ? command(`Let ${w.name} take fragments again?`, "Undrain", "/undrain", w.name) :
	command(`Move what ${w.name} runs to other workers, and give it no more?`, "Drain", "/drain", w.name);
$("stop").addEventListener("click", () => command(`Stop ${now.app}? What was sent is delivered first.`, "Stop", "/stop", now.app));
$("restart").addEventListener("click", () => command(`Stop ${now.app} and start it anew?`, "Restart", "/restart", now.app));

/* --- the whole --- */

function draw() {
	drawTrouble();
	if (!now.frame) return;
	drawApps();
	const app = appNow();
	drawCause(app);
	drawMap(app, rowNow());
	drawTabs();
	drawTable();
	drawPanel(app);
	document.title = (app && isGuilty(app) ? "! " : "") + (now.app ? now.app + " \u2013 frag" : "frag");
}
let due = false;
function drawSoon() {
	if (due) return;
	due = true;
	requestAnimationFrame(() => { due = false; draw(); });
}
function take(frame) {
	now.last = performance.now();
	now.stale = "";
	remember(frame);
	const app = frame.top.applications[0];
	if (app && app.unix_ns) now.seconds = app.unix_ns / 1e9;
	if (now.held) now.held = frame;
	else now.frame = frame;
	askEvents();
	askLogs();
	drawSoon();
}

let source = null;
function listen() {
	source = new EventSource("/data");
	source.onmessage = (event) => take(JSON.parse(event.data));
	source.onerror = async () => {
		if (source.readyState === EventSource.CLOSED) {
			const reply = await fetch("/events?after=" + Number.MAX_SAFE_INTEGER).catch(() => null);
			if (reply && reply.status === 401) return logIn();
			if (reply && reply.status === 403) now.stale = await reply.text();
			setTimeout(listen, 1500);
		}
		now.stale = now.stale || "fragctl web does not answer. What is below is old; it is asked again every few seconds.";
		drawSoon();
	};
}
setInterval(() => {
	const every = now.frame ? now.frame.driver.every_ns / 1e6 : 1000;
	if (!now.last || document.hidden || performance.now() - now.last < 3 * every + 4000) return;
	now.stale = now.stale || "Nothing has come for a while. What is below is old.";
	drawSoon();
}, 1000);

function logIn() {
	if (!$("login").open) $("login").showModal();
}
$("login-form").addEventListener("submit", async (event) => {
	event.preventDefault();
	const reply = await fetch("/login", { method: "POST", headers: { "X-Frag-Page": "1" }, body: $("token").value }).catch(() => null);
	if (!reply || !reply.ok) return write($("login-wrong"), reply ? "This is not the token." : "fragctl web does not answer.");
	$("token").value = "";
	$("login").close();
	listen();
});
$("login").addEventListener("cancel", (event) => event.preventDefault());

function hold() {
	if (now.held) [now.frame, now.held] = [now.held, null];
	else now.held = now.frame;
	$("pause").setAttribute("aria-pressed", Boolean(now.held));
	draw();
}
function theme(change) {
	let dark = (localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
	if (change) localStorage.setItem("theme", (dark = !dark) ? "dark" : "light");
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	write($("theme"), dark ? "Light" : "Dark");
	if (change) draw();
}
function step(by) {
	const names = [...$("apps").children].map((b) => b.dataset.name);
	if (names.length) choose(names[(names.indexOf(now.app) + by + names.length) % names.length]);
}
const KEYS = {
	"/": () => $("filter").focus(), r: showCause, p: hold, t: () => theme(true), "?": () => $("keys").showModal(),
	"+": () => Graph.zoom(1.25), "=": () => Graph.zoom(1.25), "-": () => Graph.zoom(0.8), 0: () => Graph.fitAll(),
	"[": () => step(-1), "]": () => step(1),
	Escape: () => { if (now.open) close(); else if (now.filter) { $("filter").value = now.filter = ""; draw(); } },
};
ORDER.forEach((key, i) => { KEYS[i + 1] = () => { chooseTab(key); $("tab-" + key).focus(); }; });
window.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
	const typing = event.target.tagName === "INPUT";
	if (typing && event.key === "Escape") event.target.blur();
	if ((typing && event.key !== "Escape") || !KEYS[event.key]) return;
	event.preventDefault();
	KEYS[event.key]();
});
$("filter").addEventListener("input", () => { now.filter = $("filter").value.trim().toLowerCase(); draw(); });
$("pause").addEventListener("click", hold);
$("theme").addEventListener("click", () => theme(true));
$("keys-open").addEventListener("click", () => $("keys").showModal());
$("cause-go").addEventListener("click", showCause);
$("panel-close").addEventListener("click", close);
$("zoom-in").addEventListener("click", () => Graph.zoom(1.25));
$("zoom-out").addEventListener("click", () => Graph.zoom(0.8));
$("zoom-fit").addEventListener("click", () => Graph.fitAll());
Graph.on({ open: openOp, openFlow, redraw: drawSoon });
theme(false);
drawTabs();
listen();
setInterval(askEcho, 1000);
