import { el, setText } from './dom.ts'
import type { Fault } from './faults.ts'
import { callsView, framesView, troublesView, type View } from './log-view.ts'
import { sessionView } from './session-view.ts'
import { socketsView } from './sockets-view.ts'
import { DevtoolsState } from './state.ts'
import { STYLE } from './style.ts'

/** How long changes are collected before they are drawn. */
const REDRAW_MS = 250

/** The one state of this page. */
export const devtools = new DevtoolsState()

/** The faults, with the names of their buttons and what they do while they are on. */
const FAULTS: readonly (readonly [fault: Fault, name: string, about: string])[] = [
  ['offline', 'Offline', 'The browser is offline: calls fail, and nothing passes on sockets.'],
  ['slow', 'Slow', 'Every response and every frame arrives 2 seconds late.'],
  ['lostAnswer', 'Lose the next answer', 'The next order will be executed, and its answer will be lost.'],
  ['sessionEnded', 'Session ended', 'To this page, the session has ended. The real one goes on.'],
]

/** Rendered on a server, the module has no elements to extend. */
const Base = (globalThis as Partial<typeof globalThis>).HTMLElement ?? (Object as unknown as typeof HTMLElement)

/** `<trading-bff-devtools>`: what the clients of this page do, and what can be tried out with them. */
export class DevtoolsPanel extends Base {
  #views: readonly View[] = []
  #leave: () => void = () => undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  connectedCallback(): void {
    if (!this.shadowRoot) this.#build(this.attachShadow({ mode: 'open' }))
    const stop = devtools.subscribe(() => (this.#timer ??= setTimeout(() => this.#draw(), REDRAW_MS)))
    // Times go on.
    const every = setInterval(() => this.#draw(), 1000)
    this.#leave = () => {
      stop()
      clearInterval(every)
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    this.#draw()
  }

  disconnectedCallback(): void {
    this.#leave()
  }

  #build(root: ShadowRoot): void {
    // A Content-Security-Policy without 'unsafe-inline' allows it, as it would allow no <style>.
    const style = new CSSStyleSheet()
    style.replaceSync(STYLE)
    root.adoptedStyleSheets = [style]
    const faults = faultsView()
    const session = sessionView(devtools)
    const troubles = troublesView(devtools.traffic)
    const sockets = socketsView(devtools)
    const calls = callsView(devtools.traffic)
    const frames = framesView(devtools.traffic)
    const grid = el(
      'div',
      { class: 'grid' },
      el('div', {}, section('Session', session), section('Problems', troubles)),
      el('div', {}, section('Sockets', sockets), section('Calls', calls)),
      section('Frames', frames),
    )
    root.append(el('section', { 'aria-label': 'Developer tools of trading-bff-client' }, faults.root, grid))
    this.#views = [faults, session, troubles, sockets, calls, frames]
  }

  #draw(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // What nobody sees is drawn once it is seen.
    if (!this.checkVisibility()) return
    for (const { root, draw } of this.#views) if (root.closest('details')?.open !== false) draw()
  }
}

/** A part that can be folded. */
const section = (name: string, { root }: View): HTMLElement =>
  el('details', { class: name.toLowerCase(), open: '' }, el('summary', {}, el('h3', {}, name)), root)

function faultsView(): View {
  const buttons = FAULTS.map(([fault, name]) => {
    const button = el('button', { type: 'button' }, name)
    button.addEventListener('click', () => devtools.setFault(fault, !devtools.faults.has(fault)))
    return button
  })
  const says = el('p', { role: 'status' })
  const root = el(
    'div',
    { class: 'faults' },
    el('div', { class: 'bar', role: 'group', 'aria-label': 'Try out' }, ...buttons),
    says,
  )
  const draw = (): void => {
    for (const [index, [fault]] of FAULTS.entries())
      buttons[index]?.setAttribute('aria-pressed', String(devtools.faults.has(fault)))
    const on = FAULTS.filter(([fault]) => devtools.faults.has(fault)).map(([, , about]) => about)
    setText(
      says,
      on.length > 0
        ? on.join(' ')
        : 'Nothing is tried out. What you try out concerns this page alone, until it is reloaded.',
    )
  }
  return { root, draw }
}
