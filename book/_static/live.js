/* Live figures without a kernel.

   A page holds each figure's picture and numbers at the start, and the stops of its controls. What
   the figure looks like at every stop is in a script of its own, _static/live/NAME.js, which is
   loaded when a control is first touched (as a script, so that it works from a file too). It calls
   companionFrames with what companion.frames.record returned, compressed. */
"use strict";

(() => {
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const loaded = new Map(); // name -> promise of the figure's data
  const arrived = new Map(); // name -> what resolves it

  window.companionFrames = (name, packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    arrived.get(name)(new Response(unpacked).json());
  };

  function load(name) {
    if (!loaded.has(name)) {
      loaded.set(name, new Promise((resolve, reject) => {
        arrived.set(name, resolve);
        const script = document.createElement("script");
        script.src = `${here}live/${name}.js`;
        script.onerror = () => {
          script.remove();
          loaded.delete(name); // so that the next move tries again
          reject(new Error("The pictures of this figure did not load. Move a control to try again."));
        };
        document.head.append(script);
      }));
    }
    return loaded.get(name);
  }

  /* Shapes as companion.vector.Shapes describes them, to SVG elements. */
  function markup(data, group, ident) {
    return data.groups[group].map((member) => {
      if (member < 0) return markup(data, -1 - member, ident);
      const [path, style, rectangle, ...places] = data.marks[member];
      const paint = data.styles[style].replace("url(#", `url(#${ident}-`);
      const clipped = rectangle < 0 ? "" : ` clip-path="url(#${ident}-clip${rectangle})"`;
      let shape = "";
      for (let i = 0; i < places.length; i += 2) {
        shape += `M${places[i]} ${places[i + 1]}${data.paths[path]}`;
      }
      return `<path d="${shape}" ${paint}${clipped}/>`;
    }).join("");
  }

  function picture(data, frame, ident) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const clips = data.clips.map(([x, y, width, height], i) =>
      `<clipPath id="${ident}-clip${i}"><rect x="${x}" y="${y}" width="${width}"` +
      ` height="${height}"/></clipPath>`);
    const hatches = data.hatches.map(([side, path, style], i) =>
      `<pattern id="${ident}-hatch${i}" width="${side}" height="${side}"` +
      ` patternUnits="userSpaceOnUse"><path d="${path}" ${style}/></pattern>`);
    svg.setAttribute("viewBox", `0 0 ${data.size.join(" ")}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", data.texts[data.alts[frame]]);
    svg.innerHTML = [...clips, ...hatches].join("") + markup(data, data.frames[frame], ident);
    return svg;
  }

  /* As live_html.py writes them: no number is broken at its sign or after <. */
  function unbroken(text) {
    return text.split(/((?:< )?\S+)/).map((part, i) => {
      if (i % 2 === 0) return part; // the spaces between words
      const span = document.createElement("span");
      span.textContent = part;
      return span;
    });
  }

  function numbers(data, frame) {
    const words = data.numbers[frame].map((position) => data.texts[position]);
    const rows = [];
    for (let i = 0; i < words.length; i += 2) {
      const row = document.createElement("div");
      const [name, value] = ["dt", "dd"].map((tag) => document.createElement(tag));
      name.textContent = words[i];
      value.append(...unbroken(words[i + 1]));
      row.append(name, value);
      rows.push(row);
    }
    return rows;
  }

  function start(figure) {
    const { joint, controls } = JSON.parse(figure.querySelector("script").textContent);
    const form = figure.querySelector("form");
    const holder = figure.querySelector(".live-picture");
    const problem = figure.querySelector(".live-problem");
    const inputs = controls.map((control) => form.elements[control.name]);

    function frame() {
      const at = inputs.map((input) => Number(input.value));
      if (joint) return at.reduce((sum, x, k) => sum * controls[k].texts.length + x, 0);
      const moved = Math.max(0, at.findIndex((x, k) => x !== controls[k].start));
      const before = controls.slice(0, moved).reduce((sum, c) => sum + c.texts.length, 0);
      return before + at[moved];
    }

    function label(k) {
      const text = controls[k].texts[inputs[k].value];
      const output = inputs[k].parentElement.querySelector("output");
      if (output) {
        output.textContent = text;
        inputs[k].setAttribute("aria-valuetext", text);
      }
    }

    function set(k, position) {
      inputs[k].value = position;
      label(k);
    }

    async function redraw() {
      try {
        const data = await load(figure.dataset.live);
        const now = frame(); // after the wait: the latest setting
        holder.replaceChildren(picture(data, now, figure.id));
        figure.querySelector("dl").replaceChildren(...numbers(data, now));
        figure.dataset.frame = now;
        problem.textContent = "";
      } catch (error) {
        problem.textContent = error.message; // the picture stays
      }
    }

    inputs.forEach((input, k) => input.addEventListener("input", () => {
      label(k);
      if (!joint) controls.forEach((c, other) => other !== k && set(other, c.start));
      redraw();
    }));
    form.querySelector("button").addEventListener("click", () => {
      controls.forEach((control, k) => set(k, control.start));
      redraw();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const touch of ["focusin", "pointerdown"]) {
      form.addEventListener(touch, () => load(figure.dataset.live).catch(() => {}), { once: true });
    }
    form.hidden = false;
  }

  /* What scrolls sideways must be reachable by keyboard. */
  function reachable() {
    for (const box of document.querySelectorAll(".live-picture, mjx-container")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("figure.live").forEach(start);
    reachable();
    window.addEventListener("resize", reachable);
    window.MathJax?.startup?.promise?.then(reachable);
  });
})();
