import { setImmediate } from 'node:timers/promises'
import { Changeable } from '../../../src/config/changing.ts'
import type { Control } from '../../../src/controls/control-document.ts'
import { SharedControls, type Changed } from '../../../src/controls/shared-controls.ts'
import { Envelope } from '../../../src/sessions/index.ts'
import { CONTROLS_KEY } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { SessionIndex } from '../../../src/store/session-index.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { SECRETS } from '../server/test-server.ts'
import { writtenBy03 } from './shared-store.ts'

/** A store, and instances whose controls read it only when a test asks them to. */
export async function loneControls() {
  const store = new MemoryStore()
  const index = await store.openIndex()
  const seen = {
    marks: [] as string[],
    writes: [] as { readonly before: string | undefined; readonly text: string; readonly until: number }[],
    reports: [] as string[],
    removed: [] as unknown[],
  }
  /** Runs before each report is written. */
  const reporting = { before: async (): Promise<void> => undefined }
  const counting: SessionIndex = {
    ...index,
    async add(...args) {
      seen.reports.push(args[1].value)
      await reporting.before()
      return index.add(...args)
    },
    async remove(...args) {
      await setImmediate()
      seen.removed.push(args)
      return index.remove(...args)
    },
  }
  const text = async (): Promise<string> => (await store.readUntracked(CONTROLS_KEY))?.value ?? ''
  const put = async (value: string): Promise<void> => {
    await store.remove(CONTROLS_KEY)
    await store.create(CONTROLS_KEY, value, Date.now() + 3_600_000)
  }
  return {
    store,
    seen,
    reporting,
    text,
    /** Puts a text into the store. */
    put,
    /** Puts a document into the store. */
    write: async (document: Readonly<Record<string, Control>>, secret?: string) =>
      put(writtenBy03(Object.entries(document), secret)),
    start: (secrets = new Changeable<readonly string[]>([SECRETS])) => {
      const world = {
        fault: undefined as unknown,
        news: 0,
        /** How far the clock of the master that has the document is ahead of the store's. */
        aheadMs: 0,
        logged: [] as unknown[][],
        /** Is told what has changed in the store. */
        changed: (_key: string | undefined): void => undefined,
        /** Runs before each write. */
        before: async (): Promise<void> => undefined,
      }
      const controls = new SharedControls({
        store: {
          async readMarked(key, mark) {
            seen.marks.push(mark)
            if (world.fault !== undefined) throw world.fault
            const reading = await store.readMarked(key, mark)
            return { ...reading, now: reading.now + world.aheadMs }
          },
          onChange: (listener) => (world.changed = listener),
          create: (...args) => store.create(...args),
          replace: (...args) => store.replace(...args),
        },
        confirmed: Object.assign(Object.create(store) as MemoryStore, {
          async create(key: string, value: string, until: number) {
            await world.before()
            seen.writes.push({ before: undefined, text: value, until })
            return store.create(key, value, until)
          },
          async replace(key: string, before: string, value: string, until: number) {
            await world.before()
            seen.writes.push({ before, text: value, until })
            return store.replace(key, before, value, until)
          },
        }),
        index: counting,
        instance: 'one',
        envelope: new Envelope(secrets),
        log: { error: (...args: unknown[]) => world.logged.push(args) },
        onChange: () => world.news++,
      })
      return Object.assign(world, {
        controls,
        cutOff: () => (world.fault = new StoreUnavailable(new Error('cut off'))),
        comeBack: async () => {
          world.fault = undefined
          await controls.catchUp()
        },
        /** Sets the notice, or lifts it. */
        set: (message: string | null, name = 'notice'): Promise<Changed> =>
          controls.change((version, now, askedAt) => [
            name,
            message === null ? { version, at: askedAt, value: null } : { version, at: now, value: { message } },
          ]),
        shown: (): unknown => controls.document.get('notice')?.value,
      })
    },
  }
}
