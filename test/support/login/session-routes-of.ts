import Fastify from 'fastify'
import type { Test } from 'tap'
import type { LoginDependencies } from '../../../src/login/login-dependencies.ts'
import { sessionRoutes } from '../../../src/login/session-routes.ts'
import { played } from './played.ts'

export const OWN = { tag: 'own-tag', subjectTag: 'ada-tag', id: 'own', key: 'own-key', record: { subject: 'ada' } }

const found = (): unknown => ({ is: 'found', session: OWN })

/** The routes over parts that a test plays: each takes a turn of the loop, then notes its call and does what `world` says. */
export async function sessionRoutesOf(t: Test, without: Readonly<Record<string, undefined>> = {}) {
  const lines: unknown[][] = []
  const world: Record<string, (...args: unknown[]) => unknown> = {
    read: found,
    extend: found,
    named: () => [{ id: 'own', isAuthentic: true }],
    endById: () => ({ loginKey: 'own-login', oidc: { idToken: 'token' } }),
    settled: () => [],
    allows: () => true,
    countOthers: () => 4,
    endAll: () => 3,
    endSessionUrl: () => new URL('https://provider.test/out'),
  }
  const { calls, now, part } = played(world)
  const deps = {
    publicUrl: 'https://bff.test',
    guard: {
      addPreflight: (_fastify: unknown, ...rest: unknown[]) => now('preflight')(...rest),
      requireScript: now('script'),
    },
    sessions: {
      read: part('read'),
      extend: part('extend'),
      state: (session?: { tag: string }) => ({ session: session?.tag, from: 'sessions' }),
      tag: (key: string) => `tag of ${key}`,
      end: part('end'),
      endById: part('endById'),
      cookie: {
        name: 'session',
        named: (cookies?: string) => world['named']?.(cookies),
        value: (cookies?: string) => cookies && `id of ${cookies}.signed`,
        verify: (value: string) => (value.endsWith('.signed') ? value.slice(0, -7) : undefined),
        attributes: () => ({ path: '/session' }),
      },
    },
    subjects: { countOthers: part('countOthers'), endAll: part('endAll'), ofEnded: part('ofEnded') },
    controls: { stateFor: (session?: { tag: string }) => ({ notice: `for ${session?.tag}` }) },
    provider: { openId: { endSessionUrl: now('endSessionUrl') } },
    startLimit: { allows: part('allows') },
    transactions: { settled: part('settled'), forget: part('forget'), attributes: () => ({ path: '/login' }) },
    ...without,
  }
  const fastify = Fastify()
  t.teardown(() => fastify.close())
  const tags: unknown[] = []
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  fastify.addHook('onRequest', async (request, reply) => {
    Object.assign(request, { log, query: { text: request.url.split('?')[1] ?? '' } })
    reply.setCookie = (...args: unknown[]) => (calls.push(['cookie', ...args]), reply)
  })
  fastify.addHook('onResponse', async ({ sessionTag, subjectTag }) => void tags.push([sessionTag, subjectTag]))
  const errors: unknown[] = []
  fastify.setErrorHandler((error, _request, reply) => (errors.push(error), reply.code(500).send('failed')))
  await fastify.register(async (scope) => sessionRoutes(scope, deps as unknown as LoginDependencies))
  await fastify.ready()
  const opened = calls.splice(0)
  const ask = async (method: 'GET' | 'POST', url: string, more: object = {}) => {
    for (const list of [calls, lines, errors, tags]) list.length = 0
    const headers = { cookie: 'cookies' }
    const response = await fastify.inject({ method, url, headers, ...more })
    return {
      status: response.statusCode,
      body: response.body === '' || response.statusCode === 500 ? undefined : response.json(),
    }
  }
  const has = (what: string): unknown[][] => calls.filter(([each]) => each === what)
  return { opened, world, calls, lines, errors, tags, has, ask }
}
