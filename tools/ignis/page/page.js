// The live page: events in, one redraw per animation frame out. It only reads; nothing here changes the pipeline.

import {drawLines, drawStages, windowMs} from "./plot.js";
import {drawPicture} from "./overlay.js";

const $ = (id) => document.getElementById(id);
const stageColors = ["#5b6b80", "#8f7ae5", "#3fa7a0", "#61a8ff", "#b5739d", "#d6a14b", "#7ea35b"];
const thresholds = {face: .7, eye: .65, blink: .5, glasses: .9, phone: .5, sleep: .5};

const live = {
  info: null, turns: [], statistics: null,
  clockOffset: null,    // pipeline time minus the browser's, ms
  lastEvent: 0,         // browser time of the last event
  connection: "connecting", ended: "",
  bitmap: null, bitmapSequence: 0,
};

// ---- what a turn says, for the side that is shown

function shownSide(turn) {
  if (!turn.left && !turn.right) return null;
  if (!turn.left || !turn.right) return turn.left ? "left" : "right";
  return (turn.right.face || 0) > (turn.left.face || 0) ? "right" : "left";
}

/** Numbers of the shown side; null means unknown. */
function signalsOf(turn) {
  const side = turn && shownSide(turn);
  if (!side) return null;
  const d = turn[side];
  const usable = (eye) => d[eye] !== null && d[eye] > thresholds.eye &&
                          (d.glasses === null || d.glasses < thresholds.glasses);
  const closed = (eye, blink) => d[blink] === null || !usable(eye) ? null : d[blink] > thresholds.blink;
  return {
    side, ...d, orientation: d.orientation, positionPx: d.position_px,
    leftClosed: closed("left_eye", "left_blink"), rightClosed: closed("right_eye", "right_blink"),
  };
}

// ---- events

function connect() {
  const events = new EventSource("/events");
  events.addEventListener("info", (e) => {
    live.info = JSON.parse(e.data);
    live.turns = [];  // perhaps another process
    live.ended = "";
    live.clockOffset = null;
    live.bitmapSequence = 0;
    buildInfo();
    heard();
  });
  events.addEventListener("turn", (e) => {
    const turn = JSON.parse(e.data);
    turn.signals = signalsOf(turn);
    live.turns.push(turn);
    // The smallest delay seen tells the clocks apart best.
    const offset = turn.t - performance.now();
    if (live.clockOffset === null || offset > live.clockOffset) live.clockOffset = offset;
    const oldest = turn.t - windowMs - 1000;
    while (live.turns.length && live.turns[0].t < oldest) live.turns.shift();
    heard();
  });
  events.addEventListener("statistics", (e) => {
    live.statistics = JSON.parse(e.data);
    heard();
  });
  events.addEventListener("end", (e) => { live.ended = JSON.parse(e.data).text; });
  events.onerror = () => {
    if (live.connection !== "lost") {
      live.connection = "lost";
      live.lostAt = performance.now();
    }
    // The browser tries again by itself, except after a refusal.
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 1500);
  };
}

function heard() {
  live.lastEvent = performance.now();
  live.connection = "live";
  schedule();
}

async function fetchPictures() {
  for (;;) {
    try {
      const response = await fetch("/frame.jpg?after=" + live.bitmapSequence);
      if (response.status === 200) {
        const sequence = Number(response.headers.get("X-Sequence"));
        const bitmap = await createImageBitmap(await response.blob());
        if (live.bitmap) live.bitmap.close();
        live.bitmap = bitmap;
        live.bitmapSequence = sequence;
        schedule();
        continue;
      }
      if (response.status !== 204) throw new Error("status " + response.status);
    } catch {
      live.bitmapSequence = 0;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

// ---- drawing

const rows = [
  // name, field, threshold, words: below and above the threshold, whether above is good
  ["Face", "face", thresholds.face, "not seen", "seen", true],
  ["Left eye", "left_eye", thresholds.eye, "not visible", "visible", true],
  ["Right eye", "right_eye", thresholds.eye, "not visible", "visible", true],
  ["Left blink", "left_blink", thresholds.blink, "open", "closed", false],
  ["Right blink", "right_blink", thresholds.blink, "open", "closed", false],
  ["Glasses", "glasses", thresholds.glasses, "none dark", "dark glasses", false],
  ["Phone", "phone", thresholds.phone, "none", "in use", false],
  ["Sleep", "sleep", thresholds.sleep, "awake", "asleep", false],
];
const lines = [
  {name: "face", color: "#61a8ff", field: "face"},
  {name: "eye L", color: "#4ac26b", field: "left_eye"},
  {name: "eye R", color: "#4ac26b", dash: [5, 4], field: "right_eye"},
  {name: "blink L", color: "#f2645a", field: "left_blink"},
  {name: "blink R", color: "#f2645a", dash: [5, 4], field: "right_blink"},
  {name: "glasses", color: "#c58af9", field: "glasses"},
  {name: "phone", color: "#e3a83b", field: "phone"},
].map((line) => ({...line, value: (turn) => turn.signals ? turn.signals[line.field] : null}));

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function setText(e, text) { if (e.textContent !== text) e.textContent = text; }
function setClass(e, name) { if (e.className !== name) e.className = name; }

function buildPage() {
  for (const [name, , threshold] of rows) {
    const row = element("div", "signal unknown");
    const bar = element("div", "bar");
    const mark = element("u");
    mark.style.left = threshold * 100 + "%";
    bar.append(element("i"), mark);
    row.append(element("span", "", name), bar, element("span", "number", "–"),
               element("span", "verdict", "unknown"));
    $("signals").append(row);
  }
  for (const name of ["pitch", "yaw", "roll", "position"]) {
    const cell = element("div");
    cell.append(element("span", "", name), element("b", "unknown", "unknown"));
    $("pose").append(cell);
  }
  for (const line of lines) {
    const entry = element("span", "unknown");
    const chip = element("i");
    chip.style.background = line.dash
        ? `repeating-linear-gradient(90deg, ${line.color} 0 3px, transparent 3px 5px)` : line.color;
    entry.append(chip, element("span", "", line.name + " unknown"));
    $("legend-probabilities").append(entry);
  }
}

function buildFacts(list, facts) {
  if (list.childElementCount !== facts.length * 2) {
    list.replaceChildren();
    for (const [name] of facts) list.append(element("dt", "", name), element("dd"));
  }
  facts.forEach(([, value, kind], i) => {
    const dd = list.children[2 * i + 1];
    setText(dd, value);
    dd.title = value;
    setClass(dd, kind || "");
  });
}

function buildInfo() {
  const table = $("stages");
  table.replaceChildren();
  const head = element("tr");
  head.append(element("th"));
  live.info.stages.forEach((name, i) => {
    const th = element("th", "", "");
    if (i < stageColors.length) {
      const chip = element("i");
      chip.style.background = stageColors[i];
      th.append(chip);
    }
    th.append(name.replace("read_back", "read"));
    head.append(th);
  });
  table.append(head);
  for (const name of ["p50", "p99"]) {
    const row = element("tr");
    row.append(element("td", "", name));
    live.info.stages.forEach(() => row.append(element("td", "", "–")));
    table.append(row);
  }
}

function sinkText(name, target) {
  const sink = live.statistics && live.statistics.sinks[name];
  if (!target || !sink) return ["off", "quiet"];
  const lost = sink.lost + sink.errors;
  return [`${sink.done} · ${target}` + (lost ? ` · ${lost} lost: ${sink.last_error}` : ""),
          lost ? "warn" : ""];
}

function drawSignals(signals) {
  rows.forEach(([, field, threshold, below, above, isGood], i) => {
    const row = $("signals").children[i];
    const value = signals ? signals[field] : null;
    const isKnown = value !== null && value !== undefined;
    setClass(row, isKnown ? "signal" : "signal unknown");
    const fill = row.children[1].firstChild;
    fill.style.width = isKnown ? value * 100 + "%" : "0";
    const isAbove = isKnown && value > threshold;
    fill.style.background = isAbove === isGood ? "var(--good)" : isGood ? "#667182" : "var(--bad)";
    setText(row.children[2], isKnown ? value.toFixed(3) : "–");
    setText(row.children[3], isKnown ? (isAbove ? above : below) : "unknown");
    setClass(row.children[3], "verdict" + (!isKnown ? "" : isAbove === isGood ? " good" : isGood ? " warn" : " bad"));
  });
  const cells = $("pose").children;
  const degrees = (i) => {
    if (!signals || !signals.orientation) return null;
    const spread = signals.orientation_std ? ` ±${(signals.orientation_std[i] * 57.2958).toFixed(0)}` : "";
    return (signals.orientation[i] * 57.2958).toFixed(0).replace("-", "−") + "°" + spread;
  };
  const position = signals && signals.position
      ? signals.position.map((v) => v.toFixed(2).replace("-", "−")).join(", ") : null;
  [degrees(0), degrees(1), degrees(2), position].forEach((text, i) => {
    setText(cells[i].lastChild, text === null ? "unknown" : text);
    setClass(cells[i].lastChild, text === null ? "unknown" : "");
  });
  lines.forEach((line, i) => {
    const value = signals ? signals[line.field] : null;
    const entry = $("legend-probabilities").children[i];
    setText(entry.lastChild, line.name + " " + (value === null || value === undefined ? "unknown" : value.toFixed(2)));
    setClass(entry, value === null || value === undefined ? "unknown" : "");
  });
}

function drawPills(signals) {
  const set = (id, text, kind) => { setText($(id), text); setClass($(id), "pill " + kind); };
  if (!signals) {
    set("pill-face", "face unknown", "");
    set("pill-eyes", "eyes unknown", "");
    set("pill-glasses", "glasses unknown", "");
    return;
  }
  const isSeen = signals.face !== null && signals.face > thresholds.face;
  set("pill-face", signals.face === null ? "face unknown" : isSeen ? "face seen" : "no face", isSeen ? "good" : "warn");
  const eyes = [signals.leftClosed, signals.rightClosed].filter((e) => e !== null);
  if (!isSeen || eyes.length === 0) set("pill-eyes", "eyes unknown", "");
  else if (eyes.every((e) => e)) set("pill-eyes", "eyes closed", "bad");
  else if (eyes.some((e) => e)) set("pill-eyes", "one eye closed", "warn");
  else set("pill-eyes", "eyes open", "good");
  if (!isSeen || signals.glasses === null) set("pill-glasses", "glasses unknown", "");
  else if (signals.glasses > thresholds.glasses) set("pill-glasses", "dark glasses", "warn");
  else set("pill-glasses", "no dark glasses", "good");
}

function drawReasons(turn) {
  const list = $("reasons");
  const key = turn ? turn.reasons.join() : "-";
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren();
  if (!turn || turn.reasons.length === 0) {
    list.append(element("li", "none", turn ? "Nothing is wrong." : "No data yet."));
    return;
  }
  for (const bit of turn.reasons) {
    const reason = live.info.reasons[bit];
    const item = element("li", reason.blocks ? "blocks" : "");
    item.append(element("b", "", reason.name), element("span", "", reason.text));
    list.append(item);
  }
}

function drawAttention(turn) {
  const a = turn && turn.attention;
  if (!a) {
    buildFacts($("attention"), [["state", "not computed", "quiet"], ["why", "–", "quiet"], ["filter", "–", "quiet"],
                                ["gate asks", "–", "quiet"]]);
    return;
  }
  const kind = !a.known ? "warn" : a.state === "attentive" ? "good" : "bad";
  buildFacts($("attention"), [
    ["state", a.state, kind],
    ["why", a.cause || "–", a.cause ? "" : "quiet"],
    ["filter", a.filter === null ? "unknown" : a.filter.toFixed(2), a.filter === null ? "quiet" : ""],
    ["head", a.pose ? `pitch ${(a.pose[0] * 57.2958).toFixed(0)}°, yaw ${(a.pose[1] * 57.2958).toFixed(0)}°` : "unknown",
     a.pose ? "" : "quiet"],
    ["gate asks", a.gate ? a.gate + (a.gate_cause ? ": " + a.gate_cause : "") : "nothing", a.gate ? "bad" : ""],
  ]);
}

function drawRun(turn) {
  const i = live.info;
  if (!i) return;
  const publish = sinkText("publish", i.publish), log = sinkText("log", i.log), record = sinkText("record", i.record);
  const calibration = turn && turn.calibration && turn.calibration.rpy
      ? turn.calibration.rpy.map((v) => v.toFixed(3)).join(", ") : "none heard";
  const view = live.statistics && live.statistics.sinks.view;
  buildFacts($("run"), [
    ...(view && view.errors > 0 ? [["picture", view.last_error, "bad"]] : []),
    ["source", i.source],
    ["model", `${i.profile} · ${i.model} · ${i.model_hash}`],
    ["calibration", calibration, turn && turn.calibration ? "" : "quiet"],
    ["publish", ...publish],
    ["log", ...log],
    ["record", ...record],
  ]);
}

/** What keeps the viewer from taking old data for new. */
function banner(now) {
  const silent = (performance.now() - live.lastEvent) / 1000;
  if (live.ended) return ["Run ended", live.ended];
  if (live.connection === "lost" || (live.lastEvent > 0 && silent > 3))
    return ["Connection lost", `ignis does not answer since ${silent.toFixed(0)} s; trying again`];
  const last = live.turns[live.turns.length - 1];
  if (live.connection === "live" && !last) return ["Waiting", "no frame has come yet"];
  if (!last) return null;
  const frames = live.turns.filter((t) => t.frame);
  const newest = frames[frames.length - 1];
  if (!last.frame || (newest && now - newest.t > 1500)) {
    const age = newest ? ((now - newest.t) / 1000).toFixed(1) + " s ago" : "more than 30 s ago";
    return ["No frames", `the last one was ${last.id || "–"}, ${age}`];
  }
  return null;
}

function draw() {
  scheduled = false;
  const last = live.turns[live.turns.length - 1] || null;
  const offset = live.clockOffset === null ? 0 : live.clockOffset;
  const now = performance.now() + offset;
  const message = banner(now);
  const isLive = !message;
  const shown = isLive ? last : null;

  // The overlay belongs to the picture's own frame, which may be one or two behind the newest data.
  const pictured = live.turns.find((t) => t.seq === live.bitmapSequence) || null;
  const kind = drawPicture($("picture"), live.bitmap, pictured || last, isLive && pictured ? pictured.signals : null, isLive);

  const state = !shown ? "unknown" : shown.valid ? "yes" : "no";
  setText($("validity"), state === "unknown" ? (live.turns.length ? "no data" : "waiting") : shown.valid ? "valid" : "not valid");
  setClass($("validity"), "badge " + (state === "yes" ? "good" : state === "no" || message && live.turns.length ? "bad" : ""));
  $("picture").parentElement.classList.toggle("invalid", state === "no" || (!!message && live.turns.length > 0));
  const connection = live.ended ? "ended" : live.connection === "live" ? "live" : live.connection === "lost" ? "connection lost" : "connecting";
  setText($("connection"), connection);
  setClass($("connection"), "quiet " + (connection === "live" ? "good" : connection === "connecting" ? "" : "bad"));

  const statistics = live.statistics;
  const number = (value, digits) => value === null || value === undefined ? "–" : value.toFixed(digits);
  setText($("tile-frame"), last ? String(last.id) : "–");
  setText($("tile-fps"), isLive && statistics ? number(statistics.fps, 1) : "–");
  setText($("tile-age"), shown ? number(shown.age_ms, 0) : "–");
  const total = live.info ? live.info.stages.indexOf("total") : -1;
  setText($("tile-p50"), statistics && total >= 0 ? number(statistics.p50[total], 1) : "–");
  setText($("tile-p99"), statistics && total >= 0 ? number(statistics.p99[total], 1) : "–");
  setText($("tile-dropped"), last ? String(last.dropped) : "–");

  const signals = shown ? shown.signals : null;
  drawPills(signals);
  drawSignals(signals);
  setText($("driver-side"), signals ? "side of the wheel: " + signals.side : "");
  drawReasons(last);
  setText($("reasons-count"), !last ? "" : last.valid ? "valid" : "not valid: nothing above may be used");
  drawAttention(last);
  drawRun(last);
  if (statistics && live.info) {
    const [, p50, p99] = $("stages").children;
    live.info.stages.forEach((_, i) => {
      const digits = (v) => v === null ? "–" : v.toFixed(v < 10 ? 2 : 1);
      setText(p50.children[i + 1], digits(statistics.p50[i]));
      setText(p99.children[i + 1], digits(statistics.p99[i]));
    });
  }
  drawLines($("plot-probabilities"), live.turns, now, lines);
  drawStages($("plot-stages"), live.turns, now, stageColors, live.info ? live.info.limit_ms : 50);

  const bannerElement = $("banner");
  bannerElement.hidden = !message;
  if (message) {
    setText(bannerElement.firstChild, message[0]);
    setText(bannerElement.lastChild, message[1]);
  }
  const data = document.body.dataset;
  data.frame = last ? last.id : 0;
  data.turns = live.turns.length;
  data.valid = state;
  data.face = kind;
  data.connection = connection;
  data.message = message ? message[0] : "";
  data.picture = live.bitmap ? live.bitmap.width + "x" + live.bitmap.height : "";
}

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

buildPage();
connect();
fetchPictures();
setInterval(schedule, 250);  // so that silence shows, too
addEventListener("resize", schedule);
schedule();
