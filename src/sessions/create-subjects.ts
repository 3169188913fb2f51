import type { Registry } from 'prom-client'
import type { Config } from '../config/config.ts'
import type { SharedState, StoreData } from '../store/store.ts'
import { createIdentityMetrics } from '../telemetry/identity-metrics.ts'
import type { Budget } from '../upstream/budget/admission.ts'
import { createIdentityClient } from '../upstream/rest-clients.ts'
import type { Envelope } from './envelope.ts'
import { Identity } from './identity.ts'
import type { SessionRepository } from './repository.ts'
import { SubjectIndex } from './subject-index.ts'
import { Subjects } from './subjects.ts'

/** What subjects need besides the configuration. */
export interface SubjectDependencies {
  readonly store: SharedState & StoreData
  readonly envelope: Envelope
  readonly sessions: SessionRepository
  readonly budget: Budget | undefined
  readonly registry: Registry
}

/** Creates the parts that only sessions with a subject need. */
export async function createSubjects(
  { secrets, upstream }: Pick<Config, 'secrets' | 'upstream'>,
  identity: NonNullable<Config['identity']>,
  { store, envelope, sessions, budget, registry }: SubjectDependencies,
): Promise<Subjects> {
  const client = createIdentityClient(upstream, budget)
  const index = new SubjectIndex(await store.openIndex(), envelope, secrets)
  return new Subjects({
    identity: new Identity(client, { upstream, identity }, createIdentityMetrics(registry)),
    index,
    sessions,
    store,
    maxSessions: identity.maxSessions,
  })
}
