import type { FastifyBaseLogger } from 'fastify'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { Provider } from '../../../src/oauth/provider.ts'
import { Sessions, type SessionRecord } from '../../../src/sessions/index.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { Metrics } from '../../../src/telemetry/metrics.ts'
import { logNames } from '../server/settings.ts'
import { stoppedClocks } from '../time/stopped-clocks.ts'
import { granted } from './held-renewal.ts'
import { sessionRecord } from './session-instance.ts'

const SECRET = 'the secret of a test, of thirty-two bytes'
const LIMITS = { idleMs: 600_000, maxMs: 36_000_000 }

/** The sessions of a server in memory, with a provider that a test plays. The clocks stand. */
export function sessionsAlone(t: Test, { hasOpenId = false } = {}) {
  const pass = stoppedClocks(t)
  const store = new MemoryStore()
  const secrets = new Changeable([SECRET])
  const envelope = new Envelope(secrets)
  const [calls, lines, counted]: [unknown[][], unknown[][], unknown[]] = [[], [], []]
  const world = {
    refresh: async (): Promise<unknown> => granted(),
    revoke: undefined as (() => Promise<unknown[]>) | undefined,
  }
  const provider = {
    circuit: { retryAfterMs: () => 0, workedAt: -Infinity },
    limit: { retryAfterMs: () => 0 },
    refresh: (...args: unknown[]) => (calls.push(['refresh', ...args]), world.refresh()),
    revoke: (tokens: unknown) => (calls.push(['revoke', tokens]), world.revoke?.()),
  }
  const sessionStore = {} as { nearCache: () => object }
  const metrics = {
    sessionStore,
    unreplicatedEnds: { inc: () => counted.push('unreplicated') },
    sessionsEnded: { inc: ({ reason }: { reason: string }) => counted.push(reason) },
    refreshes: { inc: ({ outcome }: { outcome: string }) => counted.push(outcome) },
    provider: { refreshSkipped: () => undefined, refusesMany: () => undefined },
  }
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const config = {
    cookies: { prefix: '__Host-', secure: true },
    secrets,
    session: { ...LIMITS, relayStoreGraceMs: 60_000, relaysKeepSession: true },
    logsPlainSubjects: false,
    oauth: { oidc: hasOpenId ? {} : undefined },
  } as unknown as ConstructorParameters<typeof Sessions>[0]
  const sessions = new Sessions(config, {
    store,
    envelope,
    provider: provider as unknown as Provider,
    metrics: metrics as unknown as Metrics,
    log: log as unknown as FastifyBaseLogger,
  })
  // Another instance on the same store, by which a login creates its session.
  const elsewhere = new SessionRepository(store, envelope, LIMITS, logNames(SECRET))
  const create = async (id: string, more: Partial<SessionRecord> = {}): Promise<string> => {
    await elsewhere.create(id, sessionRecord({ endsAt: Date.now() + 36_000_000, ...more }))
    return `${sessions.cookie.name}=${sessions.cookie.signer.sign(id)}`
  }
  const nearCache = (): object => sessionStore.nearCache()
  return { pass, store, secrets, envelope, sessions, elsewhere, create, world, calls, lines, counted, nearCache }
}
