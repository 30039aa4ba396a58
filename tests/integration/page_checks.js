/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the page, for test_web_page.py: each check returns a list. */
const checks = (() => {
	const seen = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
	const color = (text) => {
		const numbers = text.match(/[\d.]+/g).map(Number);
		return numbers.length < 4 ? [...numbers, 1] : numbers;
	};
	/* Of WCAG 2.2. */
	const luminance = (c) => {
		const [r, g, b] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = color(getComputedStyle(e).backgroundColor);
			if (c[3] > 0.99) return c;
		}
		return [255, 255, 255, 1];
	};
	const name = (e) => e.tagName + " " + e.textContent.slice(0, 30);
	const isText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());

	return {
		contrasts() {
			const html = seen("body *").filter((e) => isText(e) && !e.closest("svg"))
				.map((e) => [e, getComputedStyle(e).color, behind(e)]);
			/* Cards and labels of the graph, on the paper that they are drawn on. */
			const drawn = seen("svg text").map((e) => {
				const card = e.parentNode.querySelector(".card, rect");
				return [e, getComputedStyle(e).fill, card && !e.closest(".flow") ?
					color(getComputedStyle(card).fill) : behind(e.closest("div"))];
			});
			return [...html, ...drawn].map(([e, front, back]) => [e, ratio(luminance(color(front)), luminance(back))])
				.filter(([, r]) => r < 4.5).map(([e, r]) => name(e) + " " + r.toFixed(2));
		},
		nameless: () => seen("button, input, [role=button], [role=img], [role=log], [role=tabpanel]").filter((e) =>
			!(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.closest("label"))).map(name),
		/* Of the graph: machines, the fragments of all of them, and operators. */
		overlapping() {
			return [".lane > rect", ".fragment > rect", ".op > .card"].flatMap((selector) => {
				const all = seen("#graph " + selector).map((e) => [e.parentNode.textContent, e.getBoundingClientRect()]);
				return all.flatMap(([name, a], i) => all.slice(i + 1).filter(([, b]) =>
					a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
					.map(([other]) => selector + ": " + name + " and " + other));
			});
		},
		/* Targets of a finger: 24 pixels, by WCAG 2.2. */
		small: () => seen("button, input").filter((e) => {
			const r = e.getBoundingClientRect();
			return r.height < 24 || r.width < 24;
		}).map(name),
		twice() {
			const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
			return ids.filter((id, i) => ids.indexOf(id) !== i);
		},
	};
})();
