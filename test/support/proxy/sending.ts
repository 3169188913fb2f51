import { setImmediate } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import type { Call, CallDependencies } from '../../../src/proxy/call.ts'
import type { Endpoint } from '../../../src/proxy/endpoint.ts'
import type { AnswerSink } from '../../../src/proxy/idempotency/answer-sink.ts'
import { send } from '../../../src/proxy/send.ts'
import type { Problem } from '../../../src/problem.ts'
import type { Session } from '../../../src/sessions/index.ts'
import type { ForwardOutcome, ForwardRequest } from '../../../src/upstream/forwarding.ts'
import type { FirstByteConditions } from '../../../src/upstream/first-byte.ts'
import { NO_BODY, type OutgoingBody } from '../../../src/upstream/request-body.ts'
import { sessionRecord } from '../sessions/session-instance.ts'

/** Upstream has answered. */
export const ANSWERED: ForwardOutcome = { is: 'answered', status: 200 }
const WHOLE: OutgoingBody = { is: 'whole', content: Buffer.from('{}'), headers: ['content-length', '2'] }

interface Sent {
  readonly client: string
  readonly headers: readonly string[]
  readonly subject?: string
  readonly source?: () => string
  readonly conditions?: FirstByteConditions
}

/** A session whose access token is this. */
export const sessionWith = (accessToken: string, more: object = {}): Session => ({
  id: 'id',
  key: 'key',
  tag: 'tag',
  sealed: 'sealed',
  idleEndsAt: Infinity,
  record: { ...sessionRecord({ accessToken, subject: 'CR1' }), ...more },
})

/** A call, and what became of it. */
export function sending({
  method = 'POST',
  credential = 'bearer',
  session = sessionWith('token'),
}: { method?: Endpoint['method']; credential?: Endpoint['credential']; session?: Session | undefined } = {}) {
  const sent: Sent[] = []
  const options: ForwardRequest[] = []
  const accepted: unknown[] = []
  const head: unknown[] = []
  const world = {
    outcomes: [ANSWERED],
    isCurrent: true,
    reread: { is: 'live', session: sessionWith('another token') } as unknown,
    rereads: 0,
    verdict: undefined as unknown,
    identified: undefined as unknown,
    identifications: 0,
    latencies: [] as unknown[][],
    pausedSeconds: 7 as number | undefined,
    body: method === 'GET' ? NO_BODY : WHOLE,
    hasControls: true,
  }
  const client = (name: string) => ({
    forward: async (request: object, forwarded: ForwardRequest) => {
      sent.push({ client: name, ...request } as Sent)
      options.push(forwarded)
      return world.outcomes.shift() ?? ANSWERED
    },
  })
  const raw = { destroyed: false, destroy: () => head.push('destroyed'), req: { httpVersion: '1.1' } }
  Object.assign(raw, { writeHead: (...args: unknown[]) => head.push(args) })
  const reply = {
    raw,
    baseHeaders: [],
    getHeaders: () => ({}),
    hijack: () => head.push('hijacked'),
  } as unknown as FastifyReply
  const request = { id: 'request', headers: { accept: 'text/plain' }, ip: '192.0.2.1', log: { info: () => undefined } }
  const endpoint: Endpoint = { method, path: '/path', credential, summary: '' }
  const call = { endpoint, request, reply, path: '/path?a=1', session, idempotencyKey: undefined } as unknown as Call
  const deps = (): CallDependencies =>
    ({
      http: { publicUrl: 'https://bff.test' },
      upstream: { appIdHeader: 'app', appId: 'app-id', headersMs: 10, bodyMs: 20 },
      metrics: { upstreamLatency: { add: (...args: unknown[]) => world.latencies.push(args) } },
      sessions: {
        isCurrent: () => world.isCurrent,
        reread: async () => {
          world.rereads++
          return world.reread
        },
        noteAccepted: (one: Session) => accepted.push(one),
      },
      clients: { orders: client('orders'), reads: client('reads') },
      controls: world.hasControls
        ? {
            verdictOn: () => world.verdict,
            identify: async () => {
              if (++world.identifications > 2) throw new Error('identified again before it was told')
              await setImmediate()
              world.verdict = world.identified
            },
            metrics: { refusals: { inc: (labels: unknown) => head.push(labels) } },
            secondsUntil: () => world.pausedSeconds,
          }
        : undefined,
    }) as unknown as CallDependencies
  const run = async (keyed?: Parameters<typeof send>[3]): Promise<Awaited<ReturnType<typeof send>> | Problem> =>
    send(deps(), call, world.body, keyed).catch((error: unknown) => error as Problem)
  return { world, sent, options, accepted, head, run, call, raw }
}

/** What sends with a claim. */
export const keyed = (maySend = true, isStreaming = false) => ({
  claim: { maySend },
  sink: { isStreaming, begin: () => undefined, breakOff: () => undefined } as unknown as AnswerSink,
})
