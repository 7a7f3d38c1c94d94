// Rolling plots on a canvas. Time runs in milliseconds of the pipeline's clock, not of the browser's.

const windowMs = 30000;
const left = 34;  // room for the numbers

/** A canvas that is as fine as the screen; returns its 2D context scaled to CSS pixels. */
export function prepare(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "10.5px system-ui, 'DejaVu Sans', sans-serif";
  return {context, width, height};
}

function frame(canvas, top, ticks, unit) {
  const {context, width, height} = prepare(canvas);
  const y = (value) => 6 + (height - 20) * (1 - value / top);
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of ticks) {
    context.strokeStyle = "#222a35";
    context.beginPath();
    context.moveTo(left, Math.round(y(tick)) + .5);
    context.lineTo(width, Math.round(y(tick)) + .5);
    context.stroke();
    context.fillStyle = "#768292";
    context.fillText(tick + unit, left - 6, y(tick));
  }
  context.textBaseline = "alphabetic";
  for (let s = 0; s <= 30; s += 10) {
    const x = width - (width - left) * s * 1000 / windowMs;
    context.textAlign = s === 0 ? "right" : s === 30 ? "left" : "center";
    context.fillStyle = "#768292";
    context.fillText(s === 0 ? "now" : "−" + s + " s", x, height - 2);
  }
  return {context, width, height, y};
}

function xOf(t, now, width) { return width - (now - t) / windowMs * (width - left); }

/** Shades the time in which nothing was valid, and marks frames that were dropped. */
function shade(context, turns, now, width, y) {
  context.fillStyle = "#f2645a26";
  const bottom = y(0), top = 6;
  for (let i = 0; i < turns.length; ++i) {
    const turn = turns[i], next = turns[i + 1];
    const until = next ? next.t : now;
    if (turn.valid && until - turn.t < 400) continue;
    const from = turn.valid ? turn.t + 250 : turn.t;
    const x0 = Math.max(left, xOf(from, now, width));
    context.fillRect(x0, top, Math.max(1, xOf(until, now, width) - x0), bottom - top);
  }
  context.fillStyle = "#e3a83b";
  for (let i = 1; i < turns.length; ++i) {
    if (turns[i].dropped > turns[i - 1].dropped)
      context.fillRect(Math.max(left, xOf(turns[i].t, now, width)), top, 1.5, bottom - top);
  }
}

/** `lines`: {color, dash, value(turn) -> number or null}. A null interrupts the line: unknown is not zero. */
export function drawLines(canvas, turns, now, lines) {
  const {context, width, y} = frame(canvas, 1, [0, .5, 1], "");
  shade(context, turns, now, width, y);
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, y(0) + 2);
  context.clip();
  for (const line of lines) {
    context.strokeStyle = line.color;
    context.lineWidth = 1.6;
    context.setLineDash(line.dash || []);
    context.beginPath();
    let isOn = false, last = 0;
    for (const turn of turns) {
      const value = line.value(turn);
      if (value === null || value === undefined) { isOn = false; continue; }
      const x = xOf(turn.t, now, width);
      if (isOn && turn.t - last < 1000) context.lineTo(x, y(value));
      else context.moveTo(x, y(value));
      isOn = true;
      last = turn.t;
    }
    context.stroke();
  }
  context.restore();
}

let shownTop = 20;

/** Stacked bars of each frame's stages, and the limit as a line. */
export function drawStages(canvas, turns, now, colors, limit) {
  let highest = 1;
  for (const turn of turns) {
    if (!turn.times || now - turn.t > windowMs) continue;
    highest = Math.max(highest, turn.times[turn.times.length - 1]);
  }
  const steps = [2, 5, 10, 20, 30, 50, 60, 100, 200, 500, 1000, 2000, 5000];
  const wanted = steps.find((s) => s >= highest * 1.15) || highest;
  shownTop = wanted;
  const {context, width, y} = frame(canvas, shownTop, [0, shownTop / 2, shownTop], "");
  const last = turns.length ? turns[turns.length - 1] : null;
  let bar = 2;
  if (last && turns.length > 8) {
    const recent = turns.slice(-40);
    const gap = (recent[recent.length - 1].t - recent[0].t) / (recent.length - 1);
    bar = Math.min(6, Math.max(1, gap / windowMs * (width - left)));
  }
  for (const turn of turns) {
    if (!turn.times) continue;
    const x = xOf(turn.t, now, width);
    if (x < left) continue;
    let sum = 0;
    for (let s = 0; s < colors.length; ++s) {
      const from = y(Math.min(sum, shownTop)), to = y(Math.min(sum + turn.times[s], shownTop));
      context.fillStyle = colors[s];
      context.fillRect(x - bar, to, bar, from - to);
      sum += turn.times[s];
    }
  }
  shade(context, turns, now, width, y);
  if (limit <= shownTop) {
    context.strokeStyle = "#f2645a";
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(left, y(limit));
    context.lineTo(width, y(limit));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = "#f2645a";
    context.textAlign = "left";
    context.fillText("limit " + limit + " ms", left + 4, y(limit) + (y(limit) < 20 ? 12 : -4));
  }
}

export {windowMs};
