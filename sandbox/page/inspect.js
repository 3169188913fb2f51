/** The Inspect card: what scripts on this page can read, and a log of everything the page requested. */
import { $, clock, el, setText } from './dom.js'

const LIMIT = 200
const REDRAW_MS = 500
const entries = []
let nextId = 1
let timer

/** Adds a line to the log; the returned function updates it. */
export function record(entry) {
  const line = { id: nextId++, at: Date.now(), row: undefined, ...entry }
  entries.unshift(line)
  for (const dropped of entries.splice(LIMIT)) dropped.row?.remove()
  redrawSoon()
  return (changes) => {
    Object.assign(line, changes)
    redrawSoon()
  }
}

export function showSessionAnswer(answer) {
  setText($('#inspect-session'), JSON.stringify(answer, null, 2))
}

export function startInspect() {
  $('#inspect-refresh').addEventListener('click', redraw)
  redraw()
}

function redrawSoon() {
  timer ??= setTimeout(redraw, REDRAW_MS)
}

function redraw() {
  clearTimeout(timer)
  timer = undefined
  setText($('#inspect-cookie'), document.cookie === '' ? 'empty' : document.cookie)
  setText($('#inspect-storage'), `${countKeys('localStorage')} local, ${countKeys('sessionStorage')} session`)
  setText($('#inspect-hosts'), hosts())
  const body = $('#inspect-log')
  for (const line of entries.toReversed()) {
    if (line.row === undefined || !line.row.isConnected) {
      line.row = el(
        'tr',
        {},
        ...['time', 'method', 'status', 'path', 'detail'].map((name) => el('td', { class: name })),
      )
      body.prepend(line.row)
    }
    drawLine(line)
  }
}

function drawLine(line) {
  const [time, method, status, path, detail] = line.row.children
  setText(time, clock(line.at))
  setText(method, line.method)
  setText(path, line.path)
  setText(status, String(line.status))
  setText(detail, line.detail ?? '')
  status.dataset.tone = line.tone ?? 'plain'
}

function countKeys(storage) {
  try {
    return window[storage].length
  } catch {
    return 'blocked'
  }
}

function hosts() {
  const files = performance.getEntriesByType('resource').map((resource) => new URL(resource.name).host)
  return [...new Set([location.host, ...files])].join(', ')
}
