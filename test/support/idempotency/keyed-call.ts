import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { Changeable } from '../../../src/config/changing.ts'
import { IdempotencyRecords } from '../../../src/proxy/idempotency/idempotency-records.ts'
import { sendKeyed, type KeyedCall, type KeyedDependencies } from '../../../src/proxy/idempotency/send-keyed.ts'
import type { Problem } from '../../../src/problem.ts'
import { Envelope } from '../../../src/sessions/index.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { ForwardOutcome, ForwardRequest } from '../../../src/upstream/forwarding.ts'
import { SECRETS } from '../server/test-server.ts'
import { LIMITS, sessionIn } from './records.ts'

/** A browser's connection, and what came over it. */
class Raw extends EventEmitter {
  readonly req = { httpVersion: '1.1' }
  destroyed = false
  status = 0
  headers: readonly unknown[] = []
  text = ''
  hasEnded = false

  writeHead(status: number, headers: readonly unknown[]): this {
    this.status = status
    this.headers = headers
    return this
  }
  write(piece: Buffer): boolean {
    this.text += piece.toString()
    return true
  }
  end(piece?: Buffer): void {
    if (piece !== undefined) this.write(piece)
    this.hasEnded = true
  }
  destroy(): void {
    this.destroyed = true
  }
}

/** What upstream does with a call. */
type Upstream = (response: ForwardRequest) => ForwardOutcome | Promise<ForwardOutcome>

/** Calls with a key of one session, without a server. The outcomes of upstream are what a test says. */
export async function keyedCalls() {
  const store = new MemoryStore()
  const session = await sessionIn(store)
  const records = new IdempotencyRecords(store, new Envelope(new Changeable([SECRETS])), LIMITS)
  const sent: { readonly headers: readonly string[]; readonly body: unknown }[] = []
  const counted: string[] = []
  const outcomes: string[] = []
  const lines: { readonly level: string; readonly audit: unknown; readonly outcome?: unknown }[] = []
  const renewed: unknown[] = []
  const world = {
    upstream: (async () => ({ is: 'timeout', cause: new Error('silence') })) as Upstream,
    isCurrent: true,
    hasBudget: false,
    renewal: { is: 'authorized', session } as unknown,
    authorization: { is: 'authorized', session } as unknown,
    raw: new Raw(),
  }
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (line: object) => lines.push({ level, ...line } as never)]),
  )
  const deps = {
    http: { publicUrl: 'https://bff.test' },
    upstream: {
      appIdHeader: 'app',
      appId: 'id',
      headersMs: 10,
      bodyMs: 20,
      get budget() {
        return world.hasBudget ? {} : undefined
      },
    },
    metrics: {
      idempotency: { inc: ({ outcome }: { outcome: string }) => outcomes.push(outcome) },
      upstreamRequests: { count: (_endpoint: unknown, outcome: string) => counted.push(outcome) },
      upstreamLatency: { add: () => undefined },
    },
    sessions: {
      isCurrent: () => world.isCurrent,
      reread: async () => ({ is: 'none' }),
      authorize: async () => world.authorization,
      renewAfterRefusal: async (...args: unknown[]) => {
        await new Promise(setImmediate)
        renewed.push(args[1])
        return world.renewal
      },
    },
    clients: {
      orders: {
        forward: async (request: { headers: readonly string[]; body: unknown }, response: ForwardRequest) => {
          sent.push(request)
          return world.upstream(response)
        },
      },
    },
    records,
    store,
  } as unknown as KeyedDependencies
  const endpoint = { method: 'POST', path: '/transfer', credential: 'bearer', summary: '' } as const
  /** Makes a call. @returns the problem that its browser gets, if it gets one */
  const call = async (key: string, text: string | null = 'body', pieces?: Readable): Promise<Problem | undefined> => {
    const reply = {
      raw: world.raw,
      sent: false,
      baseHeaders: [],
      getHeaders: () => ({}),
      hijack: () => (reply.sent = true),
    }
    const request = { id: 'request', headers: {}, log, ip: '192.0.2.1', sessionTag: 'tag' }
    const one = { endpoint, request, reply, path: '/transfer?a=1', session, idempotencyKey: [key] }
    const content = text === null ? null : Buffer.from(text)
    const body =
      pieces === undefined ? { is: 'whole', content, headers: [] } : { is: 'streamed', content: pieces, headers: [] }
    try {
      await sendKeyed(deps, one as unknown as KeyedCall, body as Parameters<typeof sendKeyed>[2])
      return undefined
    } catch (error) {
      return error as Problem
    }
  }
  return {
    store,
    session,
    records,
    deps,
    sent,
    counted,
    outcomes,
    lines,
    renewed,
    world,
    call,
    /** Another browser, or the same one later. */
    nextBrowser: () => (world.raw = new Raw()),
  }
}

/** Upstream answers with this. */
export function answers(status: number, text: string, headers: Record<string, string> = {}): Upstream {
  return ({ begin, response }) => {
    begin(status, headers)
    response.end(Buffer.from(text))
    return { is: 'answered', status }
  }
}
