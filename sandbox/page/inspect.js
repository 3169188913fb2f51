/** The Inspect card: what scripts on this page can read, and a log of everything the page requested. */
import { client } from './bff.js'
import { $, el, setText } from './dom.js'
import { clock } from './format.js'
import { traffic } from './traffic.js'

const REDRAW_MS = 500
const SHARING_MS = 5000
/** By the id of their line. */
const rows = new Map()
let timer
let market

export function startInspect() {
  const wide = matchMedia('(min-width: 760px)')
  const fold = () => ($('#inspect-fold').open = wide.matches)
  wide.addEventListener('change', fold)
  fold()
  $('#inspect-refresh').addEventListener('click', () => {
    redraw()
    showSharing()
  })
  traffic.addEventListener('change', () => (timer ??= setTimeout(redraw, REDRAW_MS)))
  setInterval(showSharing, SHARING_MS)
  $('#inspect-fold').addEventListener('toggle', showSharing)
  redraw()
}

/** Asks the sandbox, while somebody may read it. The question goes over an upstream socket of this page's own. */
async function showSharing() {
  if (!$('#inspect-fold').open || document.hidden) return
  market ??= client.publicSocket()
  const asked = market.request({ sandbox_sharing: 1 }, { timeoutMs: SHARING_MS })
  const { sandbox_sharing: sharing } = await asked.catch(() => ({}))
  setText($('#inspect-sharing'), sharing ? sharingInWords(sharing) : 'unknown')
}

function sharingInWords({ browsers, sockets, streams, ownSockets }) {
  const shared = `${count(browsers, 'browser')}, ${count(sockets, 'upstream socket')} for all, ${count(streams, 'stream')}`
  return `${shared}; ${count(ownSockets, 'upstream socket')} for one browser alone`
}

const count = (number, what) => `${number} ${what}${number === 1 ? '' : 's'}`

function redraw() {
  clearTimeout(timer)
  timer = undefined
  setText($('#inspect-cookie'), document.cookie === '' ? 'empty' : document.cookie)
  setText($('#inspect-storage'), `${countKeys('localStorage')} local, ${countKeys('sessionStorage')} session`)
  setText($('#inspect-hosts'), hosts())
  setText($('#inspect-session'), JSON.stringify(traffic.session, null, 2) ?? '–')
  for (const line of traffic.entries.toReversed()) drawLine(line)
  const shown = new Set(traffic.entries.map(({ id }) => id))
  for (const [id, row] of rows) {
    if (shown.has(id)) continue
    row.remove()
    rows.delete(id)
  }
}

function drawLine(line) {
  const known = rows.get(line.id)
  const row =
    known ?? el('tr', {}, ...['time', 'method', 'status', 'path', 'detail'].map((name) => el('td', { class: name })))
  if (!known) {
    rows.set(line.id, row)
    $('#inspect-log').prepend(row)
  }
  const [time, method, status, path, detail] = row.children
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
