import { closeMeaning, problemMeaning, type Meaning } from './meaning.ts'

/** How many frames, calls and problems are kept. */
const LIMIT = 200
/** How many connections that have closed are kept. */
const CLOSED_LIMIT = 5
/** How much of a frame is kept. A history has a mebibyte. */
const TEXT_LIMIT = 20_000

/** A call of the server. */
export interface Call {
  readonly id: number
  readonly at: number
  readonly method: string
  readonly path: string
  status: number | 'pending' | 'no response'
  tookMs?: number
  requestId?: string | null
}

/** A message on a socket. */
export interface Frame {
  readonly id: number
  readonly at: number
  readonly connection: number
  readonly path: string
  readonly direction: 'in' | 'out'
  readonly text: string
  /** What it is about: its type, or the operation that it asks for. */
  readonly name: string
}

/** A refusal, a failure or a lost connection, and what it means. */
export interface Trouble extends Meaning {
  readonly id: number
  readonly at: number
  /** Where it happened, such as `POST /api/…`. */
  readonly where: string
  readonly requestId?: string | undefined
}

/** A subscription on a connection. */
interface StreamSeen {
  readonly message: string
  received: number
  readonly upstream: Set<string>
}

/** A connection, from its start to its end. */
export interface Connection {
  readonly id: number
  readonly path: string
  readonly startedAt: number
  state: 'connecting' | 'open' | 'closed'
  code?: number
  reason?: string
  received: number
  sent: number
  /** By `req_id`. */
  readonly streams: Map<number, StreamSeen>
  /** The operations that have no answer yet, by `req_id`. */
  readonly unanswered: Map<number, string>
  /** How many bytes the browser has not sent yet. */
  readonly bufferedAmount: () => number
}

/** A message, as far as the panel reads it. */
interface Parsed {
  readonly [member: string]: unknown
  readonly req_id?: number
  readonly msg_type?: string
  readonly event?: string
  readonly subscribe?: unknown
  readonly forget?: string
  readonly error?: { readonly code?: string; readonly message?: string }
  readonly subscription?: { readonly id?: string }
}

/** What a page sends and receives. It is kept in the memory of the page alone, and only as far as the panel shows it. */
export class Traffic {
  /** Each newest first. */
  readonly calls: Call[] = []
  readonly frames: Frame[] = []
  readonly troubles: Trouble[] = []
  readonly connections: Connection[] = []
  #nextId = 1
  #nextConnection = 1
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  call(method: string, path: string): Call {
    const call: Call = { id: this.#nextId++, at: Date.now(), method, path, status: 'pending' }
    this.#keep(this.calls, call)
    return call
  }

  /** Notes what has changed in a call or a connection. */
  changed(): void {
    this.#onChange()
  }

  /** Notes a refusal of a call. */
  refused({ method, path, requestId }: Call, status: number, code: string | undefined, detail?: string): void {
    const meaning = problemMeaning(status, code, detail)
    this.#trouble(`${method} ${path}`, meaning, requestId ?? undefined)
  }

  /** Notes a call without a response. */
  lost({ method, path }: Call): void {
    const about = 'The network, a timeout, or a call that the page has aborted.'
    const advice = method === 'GET' ? 'Try again.' : 'It may have been executed. Find out before you repeat it.'
    this.#trouble(`${method} ${path}`, { code: 'no response', about, advice })
  }

  connection(path: string, bufferedAmount: () => number): Connection {
    const connection: Connection = {
      id: this.#nextConnection++,
      path,
      startedAt: Date.now(),
      state: 'connecting',
      received: 0,
      sent: 0,
      streams: new Map(),
      unanswered: new Map(),
      bufferedAmount,
    }
    this.connections.unshift(connection)
    this.#onChange()
    return connection
  }

  /** Notes the end of a connection. @param code undefined if the page has closed it itself */
  closed(connection: Connection, code?: number, reason = ''): void {
    if (connection.state === 'closed') return
    Object.assign(connection, { state: 'closed', code, reason })
    connection.streams.clear()
    connection.unanswered.clear()
    const old = this.connections.filter(({ state }) => state === 'closed').slice(CLOSED_LIMIT)
    for (const each of old) this.connections.splice(this.connections.indexOf(each), 1)
    if (code !== undefined) this.#trouble(connection.path, closeMeaning(code, reason))
    else this.#onChange()
  }

  frame(connection: Connection, direction: Frame['direction'], data: unknown): void {
    const text = String(data)
    const { id, path } = connection
    if (direction === 'in') connection.received++
    else connection.sent++
    const kept = text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}… (${text.length} characters)` : text
    const message = parsed(text)
    const name = nameOf(message)
    this.#keep(this.frames, { id: this.#nextId++, at: Date.now(), connection: id, path, direction, text: kept, name })
    if (direction === 'in') this.#received(connection, message)
    else sent(connection, message)
  }

  clear(): void {
    for (const list of [this.calls, this.frames, this.troubles]) list.length = 0
    this.#onChange()
  }

  #received({ path, streams, unanswered }: Connection, { req_id, error, subscription }: Parsed): void {
    const operation = unanswered.get(Number(req_id))
    unanswered.delete(Number(req_id))
    const stream = streams.get(Number(req_id))
    if (stream) stream.received++
    if (subscription?.id !== undefined) stream?.upstream.add(subscription.id)
    if (!error) return
    const code = String(error.code)
    // The package asks for it again with another number, if at all.
    streams.delete(Number(req_id))
    const about = error.message ?? ''
    const advice = 'The trading service, or the server in its name, has refused this message.'
    this.#trouble(`${path}${operation === undefined ? '' : ` ${operation}`}`, { code, about, advice })
  }

  #trouble(where: string, meaning: Meaning, requestId?: string): void {
    this.#keep(this.troubles, { id: this.#nextId++, at: Date.now(), where, requestId, ...meaning })
  }

  #keep<Entry>(list: Entry[], entry: Entry): void {
    list.unshift(entry)
    list.length = Math.min(list.length, LIMIT)
    this.#onChange()
  }
}

function sent({ streams, unanswered }: Connection, message: Parsed): void {
  const { req_id, subscribe, forget, ...rest } = message
  if (req_id !== undefined)
    unanswered.set(req_id, Object.keys({ ...(forget !== undefined && { forget }), ...rest })[0] ?? '')
  if (req_id !== undefined && subscribe !== undefined)
    streams.set(req_id, { message: JSON.stringify(rest), received: 0, upstream: new Set() })
  for (const [id, { upstream }] of streams)
    if (forget !== undefined && upstream.delete(forget) && upstream.size === 0) streams.delete(id)
}

function nameOf({ error, msg_type, event, req_id: _ours, ...rest }: Parsed): string {
  const name = msg_type ?? event ?? Object.keys(rest)[0] ?? ''
  return error ? `${name}: ${error.code}` : name
}

/** The message in a text; an empty one if there is none. */
export function parsed(text: string): Parsed {
  try {
    return Object(JSON.parse(text)) as Parsed
  } catch {
    return {}
  }
}
