import type { LoginIdentity } from '../../../src/oauth/login-identity.ts'
import type { ProviderLogouts } from '../../../src/sessions/provider-logouts.ts'
import type { SessionRepository } from '../../../src/sessions/repository.ts'
import type { Place, SubjectIndex } from '../../../src/sessions/subject-index.ts'
import { Subjects } from '../../../src/sessions/subjects.ts'
import type { StoreData } from '../../../src/store/store.ts'

export const PLACE: Place = { index: 'index', id: 'id' }
export const TWIN: Place = { index: 'index by sid', id: 'twin' }
export const IDENTITY: LoginIdentity = { iss: 'issuer', sub: 'sub', sid: 'sid', issuedAt: 100 }
/** A login. */
export const CR1 = { subject: 'CR1', id: 'id', endsAt: 3_600_000, client: '203.0.113.9' }

/** What the subjects find in their index and in the store. */
export interface World {
  /** Runs before what the index does, which it then has noted. */
  before: (what: string) => Promise<void>
  state: { isListed: boolean; endedAgoMs?: number | undefined }
  /** What the provider says. */
  mayLive: boolean
  /** Keys of sessions that are listed, of those that are live, and of those that another key lists. */
  listed: readonly string[]
  live: readonly string[]
  elsewhere: readonly string[]
  startedAt: Readonly<Record<string, number>>
  idleEndsAt: Readonly<Record<string, number>>
  tag: (key: string) => string
}

/** Subjects whose index, store and logouts at the provider a test plays. */
export function heldSubjects({
  maxSessions = Infinity,
  hasLogouts = false,
  world: more = {},
}: { maxSessions?: number; hasLogouts?: boolean; world?: Partial<World> } = {}) {
  const world: World = {
    before: async () => undefined,
    state: { isListed: true },
    mayLive: true,
    listed: [],
    live: [],
    elsewhere: [],
    startedAt: {},
    idleEndsAt: {},
    tag: (key) => `tag of ${key}`,
    ...more,
  }
  const calls: unknown[][] = []
  const does =
    <Result>(what: string, result: () => Result) =>
    async (...args: unknown[]): Promise<Result> => {
      calls.push([what, ...args])
      await world.before(what)
      return result()
    }
  const index = {
    newPlace: () => PLACE,
    add: does('add', () => 7),
    remove: does('remove', () => undefined),
    end: does('end', () => Object(calls.at(-1)?.[1]).length as number),
    endAll: does('end all', () => 4),
    look: async () => world.state,
    list: async () =>
      world.listed.map((key) => ({
        key,
        tag: `tag of ${key}`,
        client: 'client',
        startedAt: world.startedAt[key] ?? 0,
        endsAt: CR1.endsAt,
        place: { index: world.elsewhere.includes(key) ? 'another index' : 'index', id: `id of ${key}` },
      })),
  }
  const sessions = {
    limits: { idleMs: 600_000, maxMs: 3_600_000 },
    stepMs: 60_000,
    tag: (key: string) => world.tag(key),
    noteSubject: does('note subject', () => undefined),
    takeBack: (undo: () => Promise<boolean>) => undo().catch(() => undefined),
  }
  const store = {
    readMany: async (keys: readonly string[]) => keys.map((key) => (world.live.includes(key) ? 'value' : undefined)),
    readUntracked: async (key: string) => {
      return world.live.includes(key) ? { value: 'value', expiresAt: world.idleEndsAt[key] ?? 0 } : undefined
    },
  }
  const logouts = {
    newPlace: ({ sid }: LoginIdentity) => (sid === undefined ? undefined : TWIN),
    enlist: does('enlist', () => undefined),
    mayLive: does('mayLive', () => world.mayLive),
  }
  const subjects = new Subjects(
    undefined,
    index as unknown as SubjectIndex,
    sessions as unknown as SessionRepository,
    store as unknown as StoreData,
    maxSessions,
    hasLogouts ? (logouts as unknown as ProviderLogouts) : undefined,
  )
  return { subjects, calls, world }
}
