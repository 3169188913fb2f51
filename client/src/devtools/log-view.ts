import { clock, el, Rows, setText } from './dom.ts'
import type { Call, Frame, Traffic, Trouble } from './traffic.ts'

/** A part of the panel that is drawn again after changes. */
export interface View {
  readonly root: HTMLElement
  readonly draw: () => void
}

/** Draws what went wrong, and what it means. */
export function troublesView(traffic: Traffic): View {
  const none = el('p', {}, 'None so far.')
  const list = el('ul', { class: 'troubles' })
  const rows = new Rows<Trouble>(list, ({ at, where, code, about, advice, requestId }) => {
    const what = [about, advice, requestId === undefined ? '' : `Request ${requestId}.`].filter((text) => text !== '')
    const head = el('p', {}, el('time', {}, clock(at)), ' ', el('strong', {}, code), ' ', el('code', {}, where))
    return el('li', {}, head, el('p', {}, what.join(' ')))
  })
  const draw = (): void => {
    none.hidden = traffic.troubles.length > 0
    rows.draw(traffic.troubles)
  }
  return { root: scrolling('Problems', el('div', {}, none, list)), draw }
}

/** Draws the calls of the server. */
export function callsView(traffic: Traffic): View {
  const { table, body } = tableOf('Time', 'Call', 'Status', 'Took')
  const rows = new Rows<Call>(
    body,
    ({ at, method, path }) =>
      el('tr', {}, el('td', {}, clock(at)), el('td', {}, el('code', {}, `${method} ${path}`)), el('td'), el('td')),
    (row, { status, tookMs, requestId }) => {
      const [, call, shown, took] = row.children
      if (shown) setText(shown, String(status))
      row.dataset['tone'] = typeof status !== 'number' ? 'plain' : status < 400 ? 'good' : 'bad'
      if (status === 'no response') row.dataset['tone'] = 'bad'
      if (took) setText(took, tookMs === undefined ? '' : `${Math.round(tookMs)} ms`)
      if (requestId) call?.setAttribute('title', `Request ${requestId}`)
    },
  )
  return { root: scrolling('Calls', table), draw: () => rows.draw(traffic.calls) }
}

/** Draws the last frames: those whose text or path has what the user looks for, until the user holds them. */
export function framesView(traffic: Traffic): View {
  const { table, body } = tableOf('Time', 'Socket', 'Frame')
  const rows = new Rows<Frame>(body, ({ at, path, connection, direction, text, name }) => {
    const start = [el('strong', {}, name), ' ', el('code', {}, text.slice(0, 200))]
    const frame = el('details', {}, el('summary', {}, ...start), el('pre', {}, pretty(text)))
    const way = el('span', { class: 'way' }, direction === 'in' ? '↓ received' : '↑ sent')
    return el('tr', {}, el('td', {}, clock(at)), el('td', {}, way, ` ${path} (${connection})`), el('td', {}, frame))
  })
  const filter = el('input', { type: 'search', placeholder: 'buy, /ws/public, req_id…' })
  const hold = el('button', { type: 'button', 'aria-pressed': 'false' }, 'Hold')
  const clear = el('button', { type: 'button' }, 'Clear all logs')
  let held: readonly Frame[] | undefined
  const draw = (): void => {
    const wanted = filter.value.toLowerCase()
    const all = held ?? traffic.frames
    rows.draw(all.filter(({ path, text }) => `${path} ${text}`.toLowerCase().includes(wanted)))
    oneTabStop(body)
  }
  body.addEventListener('keydown', moveByArrows)
  filter.addEventListener('input', draw)
  hold.addEventListener('click', () => {
    held = held ? undefined : [...traffic.frames]
    hold.setAttribute('aria-pressed', String(held !== undefined))
    draw()
  })
  clear.addEventListener('click', () => {
    held &&= []
    traffic.clear()
  })
  const bar = el('div', { class: 'bar' }, el('label', {}, 'Show only ', filter), hold, clear)
  return {
    root: el('div', {}, bar, scrolling('Frames, the newest first; the arrow keys lead from one to the next', table)),
    draw,
  }
}

/** The summaries of all frames are one stop of the Tab key: that with the focus, or the first. */
function oneTabStop(body: HTMLElement): void {
  const summaries = [...body.querySelectorAll('summary')]
  const stop = summaries.find((each) => each.matches(':focus')) ?? summaries[0]
  for (const each of summaries) each.tabIndex = each === stop ? 0 : -1
}

/** Moves the focus to the frame above or below. */
function moveByArrows(event: KeyboardEvent): void {
  const row = event.target instanceof Element ? event.target.closest('tr') : null
  const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key]
  const summary = next?.querySelector('summary')
  if (!row || !summary) return
  event.preventDefault()
  summary.focus()
  oneTabStop(summary.closest('tbody') ?? row)
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function tableOf(...heads: readonly string[]): { readonly table: HTMLElement; readonly body: HTMLElement } {
  const body = el('tbody')
  const head = el('thead', {}, el('tr', {}, ...heads.map((text) => el('th', { scope: 'col' }, text))))
  return { table: el('table', {}, head, body), body }
}

/** What may be longer than its place. A keyboard can scroll it. */
function scrolling(name: string, content: HTMLElement): HTMLElement {
  return el('div', { class: 'log', role: 'region', tabindex: '0', 'aria-label': name }, content)
}
