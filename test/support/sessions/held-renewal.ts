import type { FastifyBaseLogger } from 'fastify'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { LoginIdentity } from '../../../src/oauth/login-identity.ts'
import type { Provider } from '../../../src/oauth/provider.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import { SessionRepository } from '../../../src/sessions/repository.ts'
import { TokenRenewal } from '../../../src/sessions/token-renewal.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { Metrics } from '../../../src/telemetry/metrics.ts'
import { logNames } from '../server/settings.ts'
import { stoppedClocks } from '../time/stopped-clocks.ts'
import { sessionRecord } from './session-instance.ts'

/** New tokens. */
export const granted = () => ({
  is: 'granted',
  grant: {
    accessToken: 'new',
    refreshToken: 'new refresh',
    expiresAt: Date.now() + 3_600_000,
    lifetimeGuessed: false,
  },
})

/** A session, and the renewal of its tokens by a provider that a test plays. */
export async function renewing(t: Test) {
  const pass = stoppedClocks(t)
  const store = new MemoryStore()
  const listeners: ((key: string | undefined) => void)[] = []
  store.onChange = (listener) => void listeners.push(listener)
  const secret = 'the secret of a test'
  const limits = { idleMs: 36_000_000, maxMs: 36_000_000 }
  const sessions = new SessionRepository(store, new Envelope(new Changeable([secret])), limits, logNames(secret))
  const calls: unknown[][] = []
  const lines: unknown[][] = []
  const counted: string[] = []
  const skipped: string[] = []
  const trouble: string[] = []
  const world = {
    refresh: async (): Promise<unknown> => granted(),
    revoke: undefined as (() => Promise<unknown[]>) | undefined,
  }
  const provider = {
    circuit: { retryAfterMs: () => 0, workedAt: -Infinity },
    onLogin: undefined as ((askedAt: number) => void) | undefined,
    limit: { retryAfterMs: (_source: string) => 0 },
    refresh: (...args: unknown[]) => (calls.push(['refresh', ...args]), world.refresh()),
    revoke: (tokens: unknown) => (calls.push(['revoke', tokens]), world.revoke?.()),
  }
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const metrics = {
    provider: { refreshSkipped: (why: string) => skipped.push(why), refusesMany: (code: string) => trouble.push(code) },
    refreshes: { inc: ({ outcome }: { outcome: string }) => counted.push(outcome) },
  }
  const renewal = new TokenRenewal({
    store,
    sessions,
    provider: provider as unknown as Provider,
    metrics: metrics as unknown as Metrics,
    log: log as unknown as FastifyBaseLogger,
  })
  const oidc = { sub: 'sub' } as LoginIdentity
  const endsAt = Date.now() + 36_000_000
  await sessions.create('id', sessionRecord({ subject: 'CR1', oidc, endsAt, tokenExpiresAt: endsAt }))
  const session = await sessions.load('id')
  if (session === undefined) throw new Error('not loaded')
  return {
    store,
    sessions,
    renewal,
    session,
    provider,
    world,
    calls,
    lines,
    counted,
    skipped,
    trouble,
    pass,
    comeBack: (): void => {
      for (const listener of listeners) listener(undefined)
    },
  }
}
