/** The Inspect card: what scripts on this page can read. What the page sends and receives is shown by the devtools of the package. */
import { client } from './bff.js'
import { $, setText } from './dom.js'

const REDRAW_MS = 1000
const SHARING_MS = 5000
let market

export function startInspect() {
  const wide = matchMedia('(min-width: 760px)')
  const fold = () => ($('#inspect-fold').open = wide.matches)
  wide.addEventListener('change', fold)
  fold()
  setInterval(draw, REDRAW_MS)
  setInterval(showSharing, SHARING_MS)
  $('#inspect-fold').addEventListener('toggle', () => {
    draw()
    showSharing()
  })
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

function draw() {
  if (!$('#inspect-fold').open || document.hidden) return
  setText($('#inspect-cookie'), document.cookie === '' ? 'empty' : document.cookie)
  setText($('#inspect-storage'), `${countKeys('localStorage')} local, ${countKeys('sessionStorage')} session`)
  setText($('#inspect-hosts'), hosts())
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
