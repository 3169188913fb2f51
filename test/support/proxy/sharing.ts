import type { FastifyReply, FastifyRequest } from 'fastify'
import { Changeable } from '../../../src/config/changing.ts'
import type { CallDependencies } from '../../../src/proxy/call.ts'
import type { Endpoint } from '../../../src/proxy/endpoint.ts'
import { SharedResponse } from '../../../src/proxy/shared-responses.ts'
import { Envelope } from '../../../src/sessions/index.ts'
import { sharedResponseKey } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { FetchOutcome } from '../../../src/upstream/buffered-exchange.ts'

export const ENDPOINT: Endpoint = { method: 'GET', path: '/health', credential: 'none', summary: '' }

/** A response of upstream. */
export const answered = (
  body: string,
  status = 200,
  headers: Readonly<Record<string, string | readonly string[]>> = {},
): FetchOutcome => ({ is: 'answered', response: { status, headers: headers as never, body: Buffer.from(body) } })

interface Asked {
  readonly timeoutMs: number
}

/** A store, and instances that share a response in it. A response counts for 3 s, upstream has 10 s. */
export function sharing({ hasBudget = false } = {}) {
  const store = new MemoryStore()
  const listeners: ((key: string | undefined) => void)[] = []
  store.onChange = (listener) => void listeners.push(listener)
  const envelope = new Envelope(new Changeable(['the secret of the shared response']))
  return {
    store,
    envelope,
    /** The link to the store is there again. */
    comeBack: () => {
      for (const listener of listeners) listener(undefined)
    },
    instance: () => {
      const asked: Asked[] = []
      const world = {
        exchange: async (): Promise<FetchOutcome> => answered(`response ${asked.length}`),
        counted: [] as unknown[][],
        latencies: [] as unknown[][],
        /** All forget what they have. */
        forget: async () => {
          await store.remove(sharedResponseKey(ENDPOINT.path))
          shared = new SharedResponse(ENDPOINT, deps)
        },
      }
      const deps = {
        upstream: { headersMs: 10_000, healthMs: 3000, budget: hasBudget ? {} : undefined },
        store,
        envelope,
        clients: {
          reads: {
            exchange: (request: Asked) => {
              asked.push(request)
              return world.exchange()
            },
          },
        },
        metrics: {
          upstreamRequests: { count: (...args: unknown[]) => world.counted.push(args) },
          upstreamLatency: { add: (...args: unknown[]) => world.latencies.push(args) },
        },
      } as unknown as CallDependencies
      let shared = new SharedResponse(ENDPOINT, deps)
      return {
        asked,
        world,
        /** What a caller gets. */
        call: async (id = 'request') => {
          const got = { status: 0, headers: [] as readonly string[], body: '' }
          const raw = {
            writeHead(status: number, headers: readonly string[]) {
              Object.assign(got, { status, headers })
              return { end: (body: Buffer) => (got.body = body.toString()) }
            },
          }
          const reply = { raw, baseHeaders: [], getHeaders: () => ({}), hijack: () => undefined }
          await shared.send({ id } as FastifyRequest, reply as unknown as FastifyReply)
          return got
        },
      }
    },
  }
}
