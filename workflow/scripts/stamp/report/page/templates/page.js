// Table, menu, cards and picks of a study's page. The charts are Vega-Lite's.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const find = (selector, inside) => (inside || document).querySelector(selector);
  const all = (selector, inside) => Array.from((inside || document).querySelectorAll(selector));
  const views = {};
  const picks = new Set();
  let target = data.outcomes.length ? data.outcomes[0].key : "";

  // Elements are made with text nodes only: a name can't become markup.
  function make(name, attributes, ...inside) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    for (const each of inside) if (each !== null && each !== undefined) node.append(each);
    return node;
  }
  const number = (value, digits = 3) => value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−");
  const percent = (value) => value === null || value === undefined ? "–" : value > 0 && value < 0.001 ? "< 0.1 %" : parseFloat((100 * value).toFixed(value < 0.1 ? 1 : 0)) + " %";
  const prose = (text) => text.split("`").map((part, place) => place % 2 ? make("code", {}, part) : part);

  // --- charts ---
  function draw(name) {
    const place = document.getElementById("chart-" + name);
    if (!place || !data.charts[name]) return Promise.resolve();
    const spec = Object.assign({}, data.charts[name], { datasets: data.datasets });
    if (innerWidth < 640) {
      const legend = Object.assign({}, spec.config.legend, { columns: 1, layout: { bottom: { direction: "vertical" } } });
      spec.config = Object.assign({}, spec.config, { legend });
    }
    return vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true, tooltip: { theme: "custom" } })
      .then((made) => {
        views[name] = made.view;
        made.view.addEventListener("click", (event, item) => {
          if (item && item.datum && item.datum.model) toggle(item.datum.model);
        });
        return signals(made.view);
      });
  }
  function signals(view) {
    return view.signal("target", target).signal("picks", Array.from(picks)).runAsync();
  }
  const redraw = () => Promise.all(Object.values(views).map(signals));

  // --- picks ---
  function toggle(model) {
    if (!picks.delete(model)) picks.add(model);
    for (const row of rows) {
      const picked = picks.has(row.dataset.model);
      row.classList.toggle("picked", picked);
      find("input", row).checked = picked;
    }
    find("#clear").disabled = picks.size === 0;
    find("#picked-count").textContent = picks.size ? picks.size + " picked" : "";
    redraw();
  }

  // --- the table ---
  const table = find("#leaderboard-table");
  const rows = table ? all("tbody tr", table) : [];
  const perPage = 50;
  let page = 0, shown = rows;
  function filterRows() {
    const words = find("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = find("#only").value;
    shown = rows.filter((row) => words.every((word) => row.dataset.search.includes(word)) &&
      (only === "" || (only === "picked" ? picks.has(row.dataset.model) : row.dataset.flags.split(" ").includes(only))));
    page = 0;
    showPage();
  }
  function showPage() {
    const last = Math.max(0, Math.ceil(shown.length / perPage) - 1);
    page = Math.min(page, last);
    const visible = new Set(shown.slice(page * perPage, (page + 1) * perPage));
    for (const row of rows) row.hidden = !visible.has(row);
    find("#previous").disabled = page === 0;
    find("#next").disabled = page === last;
    find("#pages").hidden = last === 0;
    find("#page-number").textContent = "page " + (page + 1) + " of " + (last + 1);
    find("#count").textContent = shown.length === rows.length ? rows.length + (rows.length === 1 ? " model" : " models") : shown.length + " of " + rows.length + " models";
  }
  function sortBy(head) {
    const descending = head.getAttribute("aria-sort") === "none" ? head.dataset.first === "descending" : head.getAttribute("aria-sort") === "ascending";
    const place = Array.from(head.parentNode.children).indexOf(head);
    const value = (row) => row.children[place].dataset.sort;
    const numeric = head.dataset.kind === "number";
    const order = (a, b) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const sign = numeric ? Number(x) - Number(y) : x.localeCompare(y);
      return descending ? -sign : sign;
    };
    rows.sort(order);
    for (const row of rows) row.parentNode.append(row);
    for (const each of all("th[aria-sort]", table)) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    filterRows();
  }
  if (table) {
    for (const head of all("th[aria-sort]", table)) find("button", head).addEventListener("click", () => sortBy(head));
    for (const row of rows) {
      find("input", row).addEventListener("change", () => toggle(row.dataset.model));
      find("button.link", row).addEventListener("click", () => { location.hash = "model=" + encodeURIComponent(row.dataset.model); });
    }
    find("#search").addEventListener("input", filterRows);
    find("#only").addEventListener("change", filterRows);
    find("#previous").addEventListener("click", () => { page -= 1; showPage(); });
    find("#next").addEventListener("click", () => { page += 1; showPage(); });
    find("#clear").addEventListener("click", () => Array.from(picks).forEach(toggle));
    if (find("#all-outcomes")) find("#all-outcomes").addEventListener("change", (event) => table.classList.toggle("all", event.target.checked));
    addEventListener("beforeprint", () => { for (const row of rows) row.hidden = !shown.includes(row); });
    addEventListener("afterprint", showPage);
    filterRows();
  }

  // --- the menu of targets ---
  const menu = find("#target");
  function tellRho() {
    const one = data.outcomes.find((each) => each.key === target);
    for (const which of ["stamp", "source"]) {
      const found = one[which], place = find("#rho-" + which);
      if (!place) continue;
      if (found.rho === null || found.rho === undefined) { place.textContent = "ρ undefined" + (found.reason ? ": " + found.reason : ""); continue; }
      let text = (which === "source" && one.source_matched ? "class-matched, " : "") + "ρ = " + number(found.rho, 2);
      if (found.low !== null && found.low !== undefined) text += " (" + data.level + " interval " + number(found.low, 2) + " to " + number(found.high, 2) + ")";
      text += ", n = " + found.n;
      if (which === "stamp" && found.partial !== null && found.partial !== undefined) text += "; partial ρ given the source metric " + number(found.partial, 2);
      if (which === "stamp" && found.partial_corrected !== null && found.partial_corrected !== undefined) text += " (" + number(found.partial_corrected, 2) + " corrected for its noise)";
      place.textContent = text;
    }
    for (const place of all(".target-title")) place.textContent = one.title;
    find("#target-metric").textContent = one.metric + (one.matched ? "; class-matched STAMP" : "");
  }
  if (menu) {
    menu.addEventListener("change", () => {
      target = menu.value;
      tellRho();
      redraw();
    });
    tellRho();
  }

  // --- cards ---
  const dialog = find("#card");
  function outputsTable(pair) {
    const body = pair.outputs.map((one) => make("tr", {}, make("th", { scope: "row" }, one.class),
      make("td", { class: "num" }, number(one.a, 2)), make("td", { class: "num" }, number(one.b, 2)), make("td", { class: "num" }, percent(one.share))));
    return make("table", {}, make("caption", { class: "hidden-text" }, "The outputs that moved most: first and second image, and their share of the squared distance"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "output"), make("th", { scope: "col", class: "num" }, "first"),
        make("th", { scope: "col", class: "num" }, "second"), make("th", { scope: "col", class: "num" }, "share"))), make("tbody", {}, ...body));
  }
  function picture(pair, which) {
    const address = pair.images ? data.pictures[pair.images[which]] : undefined;
    const labels = pair.labels[which];
    const said = labels === null ? "not labeled" : labels.length ? "labeled " + labels.join(", ") : "none of the classes";
    const box = make("div", {});
    if (address) box.append(make("img", { src: address, alt: (which ? "second" : "first") + " image, " + said }));
    box.append(make("span", { class: "sub" }, said));
    return box;
  }
  function pairBox(pair) {
    return make("article", { class: "pair" }, make("div", { class: "images" }, picture(pair, 0), picture(pair, 1)),
      make("p", {}, "Squared distance " + Number(pair.squared.toPrecision(3)) + ": " + percent(pair.share) + " of SV"), outputsTable(pair));
  }
  function pairsOf(model) {
    const found = data.pairs[model];
    if (!found) return [];
    const parts = [make("h3", {}, "The pairs behind the score")];
    if (found.top_share !== null) parts.push(make("p", {}, "Of " + found.pairs.toLocaleString("en") + " sampled " + found.kind + " pairs, the " + percent(found.top) + " with the largest distances hold " + percent(found.top_share) + " of their SV."));
    parts.push(make("figure", {}, make("figcaption", { class: "soft" }, "How far the outputs lie apart: semantic pairs against random pairs. The further left the semantic pairs, the higher the score."), make("div", { class: "chart", id: "chart-distances" })));
    if (!data.holds_images) parts.push(make("p", { class: "soft small" }, ...prose(data.no_images)));
    parts.push(make("h3", {}, "Pairs that add most to SV"), make("div", { class: "pairs" }, ...found.largest.map(pairBox)));
    parts.push(make("h3", {}, "Typical pairs"), make("div", { class: "pairs" }, ...found.typical.map(pairBox)));
    return parts;
  }
  function section(one) {
    const rows = one.rows && one.rows.length ? make("dl", {}, ...one.rows.flatMap((row) => [make("dt", {}, row[0]), make("dd", {}, row[1])])) : null;
    const flags = (one.flags || []).map((flag) => make("div", {}, make("p", {}, make("span", { class: "flag " + flag.severity }, flag.label), " " + flag.reason),
      make("p", { class: "soft small" }, ...prose(flag.meaning + " " + flag.advice))));
    const texts = (one.texts || []).map((text) => make("p", {}, ...prose(text)));
    const items = one.items ? make("ul", {}, ...one.items.map((text) => make("li", {}, text))) : null;
    const code = one.code ? make("pre", { tabindex: "0" }, make("code", {}, one.code)) : null;
    return [make("h3", {}, one.title), rows, ...flags, ...texts, items, code].filter((each) => each !== null);
  }
  function openCard(model) {
    const card = data.cards[model];
    if (!card) return;
    const row = rows.find((each) => each.dataset.model === model);
    const name = row ? row.dataset.name : model;
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => dialog.close());
    const body = make("div", { class: "card-body" });
    const pairs = pairsOf(model);
    for (const one of card) {
      if (one.title === "What was not tested") body.append(...pairs.splice(0));
      body.append(...section(one));
    }
    body.append(...pairs);
    const heading = make("h2", { id: "card-title", tabindex: "-1" }, name);
    dialog.replaceChildren(make("div", { class: "card-head" }, heading, close), body);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    heading.focus();
    const found = data.pairs[model];
    if (!found) return;
    const far = found.distances;
    data.datasets.distances = ["semantic", "random"].flatMap((kind) => far[kind].map((share, i) => ({ kind: kind + " pairs", low: far.edges[i], high: far.edges[i + 1], share })));
    draw("distances");
  }
  function followHash() {
    const found = location.hash.match(/^#model=(.*)$/);
    if (found) openCard(decodeURIComponent(found[1]));
    else if (dialog && dialog.open) dialog.close();
  }
  if (dialog) {
    dialog.addEventListener("close", () => {
      if (views.distances) { views.distances.finalize(); delete views.distances; }
      if (location.hash.startsWith("#model=")) history.replaceState(null, "", location.pathname + location.search);
    });
    addEventListener("hashchange", followHash);
  }

  Promise.all(Object.keys(data.charts).filter((name) => name !== "distances").map(draw))
    .then(followHash)
    .then(() => { document.documentElement.dataset.ready = "true"; });
})();
