// What is drawn over the picture: box, landmarks, eyes, pose axes. Coordinates come in pixels of the source frame.

import {prepare} from "./plot.js";

const colors = {good: "#4ac26b", warn: "#e3a83b", bad: "#f2645a", unknown: "#9aa6b5"};

/** Draws the picture (or nothing yet) as large as it fits, and the turn's findings over it. */
export function drawPicture(canvas, bitmap, turn, signals, isLive) {
  const {context, width, height} = prepare(canvas);
  context.fillStyle = "#05070a";
  context.fillRect(0, 0, width, height);
  const size = turn && turn.size[0] > 0 ? turn.size
             : bitmap ? [bitmap.width, bitmap.height] : [1928, 1208];
  const scale = Math.min(width / size[0], height / size[1]);
  const x0 = (width - size[0] * scale) / 2, y0 = (height - size[1] * scale) / 2;
  if (bitmap) {
    context.globalAlpha = isLive ? 1 : .35;
    context.drawImage(bitmap, x0, y0, size[0] * scale, size[1] * scale);
    context.globalAlpha = 1;
  } else {
    context.fillStyle = "#667182";
    context.textAlign = "center";
    context.font = "15px system-ui, 'DejaVu Sans', sans-serif";
    context.fillText("no picture yet", width / 2, height / 2);
  }
  if (!turn || !isLive || !signals) return "none";
  const at = (point) => [x0 + point[0] * scale, y0 + point[1] * scale];
  return drawFace(context, turn, signals, at, scale);
}

function drawFace(context, turn, s, at, scale) {
  const color = s.face === null ? colors.unknown : s.face > .7 ? colors.good : colors.warn;
  const box = turn.face && turn.face.box;
  let center = null, reach = 0, kind = "none";
  context.lineWidth = 2.5;
  context.strokeStyle = color;
  if (box && turn.face.score !== null) {
    const [left, top] = at([box[0], box[1]]), [right, bottom] = at([box[2], box[3]]);
    corners(context, left, top, right, bottom);
    label(context, "face " + (s.face === null ? "?" : s.face.toFixed(2)), left, top - 6, color);
    center = [(left + right) / 2, (top + bottom) / 2];
    reach = (right - left) * .55;
    kind = "box";
    drawLandmarks(context, turn.face.landmarks, s, at, Math.max(3, (right - left) * .045));
  } else if (s.positionPx && s.face !== null && s.face > .5) {
    // The model tells where the face is, not how large: a dashed ring claims no more than that.
    center = at(s.positionPx);
    reach = 110 * scale;
    context.setLineDash([7, 6]);
    context.beginPath();
    context.arc(center[0], center[1], 150 * scale, 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
    label(context, "face " + s.face.toFixed(2) + " (position only)",
          center[0] - 150 * scale, center[1] - 150 * scale - 6, color);
    kind = "ring";
  }
  if (center && s.orientation) axes(context, center, s.orientation, reach);
  return kind;
}

function corners(context, left, top, right, bottom) {
  const size = Math.min(right - left, bottom - top) * .22;
  context.beginPath();
  for (const [x, y, dx, dy] of [[left, top, 1, 1], [right, top, -1, 1], [left, bottom, 1, -1],
                                [right, bottom, -1, -1]]) {
    context.moveTo(x + dx * size, y);
    context.lineTo(x, y);
    context.lineTo(x, y + dy * size);
  }
  context.stroke();
  context.globalAlpha = .35;
  context.lineWidth = 1;
  context.strokeRect(left, top, right - left, bottom - top);
  context.globalAlpha = 1;
}

function label(context, text, x, y, color) {
  context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
  context.textAlign = "left";
  context.textBaseline = "bottom";
  const width = context.measureText(text).width;
  x = Math.max(2, Math.min(x, context.canvas.clientWidth - width - 12));
  y = Math.max(20, y);
  context.fillStyle = "#0b0e13d8";
  context.fillRect(x - 1, y - 17, width + 10, 18);
  context.fillStyle = color;
  context.fillText(text, x + 4, y - 1);
  context.textBaseline = "alphabetic";
}

/** Five points: eyes, nose, mouth corners. An eye is a ring when open, a bar when closed, dotted when nobody knows. */
function drawLandmarks(context, points, s, at, radius) {
  if (!points) return;
  points.forEach((point, i) => {
    const [x, y] = at(point);
    context.lineWidth = 2;
    context.beginPath();
    if (i < 2) {
      // The person's right eye is on the left of the picture.
      const closed = i === 0 ? s.rightClosed : s.leftClosed;
      context.strokeStyle = closed === null ? colors.unknown : closed ? colors.bad : colors.good;
      if (closed === true) {
        context.moveTo(x - radius * 1.6, y);
        context.lineTo(x + radius * 1.6, y);
      } else {
        if (closed === null) context.setLineDash([2, 3]);
        context.arc(x, y, radius * 1.5, 0, 2 * Math.PI);
      }
      context.stroke();
      context.setLineDash([]);
    } else {
      context.fillStyle = "#61a8ff";
      context.arc(x, y, Math.max(2, radius * .55), 0, 2 * Math.PI);
      context.fill();
    }
  });
}

/**
 * Pitch (up), yaw (to the picture's right) and roll (clockwise) in rad turn three axes: the face's right in red, its
 * down in green, and the way the nose points in blue.
 */
function axes(context, center, [pitch, yaw, roll], reach) {
  const turn = ([a, b, c]) => {
    [a, b] = [a * Math.cos(roll) - b * Math.sin(roll), a * Math.sin(roll) + b * Math.cos(roll)];
    [b, c] = [b * Math.cos(pitch) - c * Math.sin(pitch), b * Math.sin(pitch) + c * Math.cos(pitch)];
    [a, c] = [a * Math.cos(yaw) + c * Math.sin(yaw), c * Math.cos(yaw) - a * Math.sin(yaw)];
    return [a, b, c];
  };
  for (const [axis, color, width] of [[[.7, 0, 0], "#f2645a", 2], [[0, .7, 0], "#4ac26b", 2],
                                      [[0, 0, 1.25], "#61a8ff", 3]]) {
    const [x, y] = turn(axis);
    const end = [center[0] + x * reach, center[1] + y * reach];
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(...center);
    context.lineTo(...end);
    context.stroke();
    context.beginPath();
    context.arc(...end, width + .5, 0, 2 * Math.PI);
    context.fill();
  }
}
