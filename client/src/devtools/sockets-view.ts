import type { SocketStatus } from '../core/client.ts'
import { count, drawFacts, duration, el, Rows, setText } from './dom.ts'
import { closeMeaning, type Meaning } from './meaning.ts'
import type { DevtoolsState } from './state.ts'
import type { Connection } from './traffic.ts'

/** All that goes over one path: the sockets of the page, and the connections that carry them. */
interface Path {
  readonly id: number
  readonly path: string
  readonly status: SocketStatus | undefined
  /** How many sockets of the page there are, and how many of their requests have not ended. */
  readonly sockets: number
  readonly waiting: number
  readonly connections: readonly Connection[]
}

/** Draws the sockets, with their streams and queues. */
export function socketsView(state: DevtoolsState): { readonly root: HTMLElement; readonly draw: () => void } {
  const none = el('p', {}, 'No socket has been opened since the devtools were loaded.')
  const list = el('ul', { class: 'paths' })
  const ids = new Map<string, number>()
  const rows = new Rows<Path>(list, makePath, drawPath)
  const draw = (): void => {
    const paths = pathsOf(state, ids)
    none.hidden = paths.length > 0
    rows.draw(paths)
  }
  return { root: el('div', {}, none, list), draw }
}

function pathsOf({ clients, traffic }: DevtoolsState, ids: Map<string, number>): Path[] {
  const sockets = Array.from(clients, (client) => Array.from(client.sockets)).flat()
  const paths = new Set([...sockets, ...traffic.connections].map(({ path }) => path))
  return [...paths].map((path) => {
    const id = ids.get(path) ?? ids.size
    ids.set(path, id)
    const own = sockets.filter((socket) => socket.path === path)
    return {
      id,
      path,
      status: own.at(-1)?.status(),
      sockets: own.length,
      waiting: own.reduce((sum, { waiting }) => sum + waiting, 0),
      connections: traffic.connections.filter((connection) => connection.path === path),
    }
  })
}

function makePath({ path }: Path): HTMLElement {
  return el(
    'li',
    {},
    el('h4', {}, el('code', {}, path)),
    el('p', { class: 'state' }),
    el('dl'),
    el('ul', { class: 'streams' }),
  )
}

function drawPath(row: HTMLElement, { path, status, sockets, waiting, connections }: Path): void {
  const [, line, list, streams] = row.children
  const live = connections.filter(({ state }) => state !== 'closed')
  const inFlight = live.reduce((sum, { unanswered }) => sum + unanswered.size, 0)
  const bytes = live.reduce((sum, { bufferedAmount }) => sum + bufferedAmount(), 0)
  if (line) setText(line, statusInWords(status, live))
  ;(line as HTMLElement).dataset['state'] = status?.state ?? live[0]?.state ?? 'closed'
  const facts: [string, string][] = []
  if (path !== '/ws/session') {
    facts.push(
      ['Latency', status?.latencyMs === undefined ? 'not measured yet' : `${status.latencyMs} ms`],
      [
        'Waiting',
        `${count(waiting, 'request')} of the page, ${inFlight} sent without an answer, ${bytes} bytes unsent`,
      ],
      ['Open in the page', count(sockets, 'socket')],
    )
  }
  facts.push(...connections.map(connectionFact))
  drawFacts(list as HTMLElement, facts)
  drawStreams(streams as HTMLElement, live)
}

function statusInWords(status: SocketStatus | undefined, live: readonly Connection[]): string {
  if (!status) return live[0]?.state ?? 'closed'
  const { state, retryAt, code, reason } = status
  const next = state === 'waiting' && retryAt !== undefined ? `, next attempt in ${duration(retryAt - Date.now())}` : ''
  const why = code === undefined || state === 'open' ? '' : `, after ${code}${reason ? ` ${reason}` : ''}`
  return `${state}${next}${why}`
}

function connectionFact({ id, state, code, reason, startedAt, received, sent }: Connection): [string, string] {
  const frames = `${count(received, 'frame')} in, ${sent} out`
  if (state !== 'closed') return [`Connection ${id}`, `${state} for ${duration(Date.now() - startedAt)}, ${frames}`]
  const why = code === undefined ? 'closed from here' : closedInWords(closeMeaning(code, reason ?? ''))
  return [`Connection ${id}`, `${why} (${frames})`]
}

const closedInWords = ({ code, about }: Meaning): string => `closed ${code}: ${about}`

function drawStreams(list: HTMLElement, live: readonly Connection[]): void {
  const texts = live.flatMap(({ id, streams }) =>
    Array.from(streams.values(), ({ message, received }) => ({
      message,
      state: `${count(received, 'message')}, connection ${id}`,
    })),
  )
  while (list.children.length > texts.length) list.lastElementChild?.remove()
  while (list.children.length < texts.length) list.append(el('li', {}, el('code'), ' ', el('span')))
  for (const [index, { message, state }] of texts.entries()) {
    const [code, span] = list.children[index]?.children ?? []
    if (code) setText(code, message)
    if (span) setText(span, state)
  }
}
