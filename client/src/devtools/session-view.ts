import { drawFacts, duration, clock, el } from './dom.ts'
import type { ObservedClient } from './observed-client.ts'
import type { DevtoolsState } from './state.ts'

/** Draws the session of each client, and who has told of it. */
export function sessionView({ clients, traffic }: DevtoolsState): {
  readonly root: HTMLElement
  readonly draw: () => void
} {
  const none = el(
    'p',
    {},
    'No client yet. A client with ',
    el('code', {}, 'debug: true'),
    ' is shown from its first call on.',
  )
  const list = el('dl')
  const root = el('div', {}, none, list)
  const draw = (): void => {
    none.hidden = clients.size > 0
    const keepsSocket = traffic.connections.some(({ path, state }) => path === '/ws/session' && state !== 'closed')
    drawFacts(
      list,
      [...clients].flatMap((observed) => facts(observed, keepsSocket)),
    )
  }
  return { root, draw }
}

const left = (at: number): string => `${clock(at)}, in ${duration(at - Date.now())}`

function facts({ client, source }: ObservedClient, keepsSocket: boolean): (readonly [string, string])[] {
  const state = client.session.get()
  const shown = state.status === 'unavailable' ? (state.last ?? state) : state
  const from = state.status === 'unknown' ? 'nobody yet' : `${source.name}, ${duration(Date.now() - source.at)} ago`
  const known: (readonly [string, string])[] = [
    ['State', state.status === 'anonymous' && state.reason ? `anonymous, ended: ${state.reason}` : state.status],
    ['Told by', from],
    ['Session socket', keepsSocket ? 'kept by this tab' : 'none in this tab: another tab keeps it, or nobody needs it'],
  ]
  if (shown.status === 'active') {
    const { session, subject, scope, expiresAt, idleExpiresAt, expiring, ordersPaused } = shown
    known.push(
      ['Session', session],
      ['Subject', subject ?? 'not known'],
      ['Scope', scope],
      ['Ends', left(expiresAt)],
      ['Ends unless used', `${left(idleExpiresAt)}${expiring ? ` (expiring: ${expiring})` : ''}`],
    )
    if (ordersPaused) known.push(['Orders', `paused: ${ordersPaused.message ?? 'no reason given'}`])
  }
  if (state.notice) known.push(['Notice', state.notice.message])
  const time = client.serverNow()
  if (time) {
    const ahead = Math.round(time.now - Date.now())
    known.push(['Clock of the server', `${ahead >= 0 ? '+' : ''}${ahead} ms, ± ${Math.round(time.errorMs)} ms`])
  }
  return known
}
