import { Registry } from 'prom-client'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { Control, ControlDocument } from '../../../src/controls/control-document.ts'
import { Controls } from '../../../src/controls/controls.ts'
import { Envelope, type Session } from '../../../src/sessions/index.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { SECRETS } from '../server/test-server.ts'

/** A session whose subject is known from its login, or is not. */
export const sessionOf = (subject?: string): Session =>
  ({ key: `session of ${subject ?? 'somebody'}`, record: { ...(subject !== undefined && { subject }) } }) as Session

/** Controls whose document, and whose clock, a test decides. They read no store by themselves. */
export async function drivenControls(t: Test) {
  const store = new MemoryStore()
  const world = {
    now: 1_000_000,
    isBehind: false,
    isUnread: false,
    document: new Map() as ControlDocument,
    /** Whose session it is, as upstream says. */
    subject: undefined as string | undefined,
    asked: [] as Session[],
  }
  const registry = new Registry()
  const controls = new Controls({
    store,
    confirmed: store,
    index: await store.openIndex(),
    instance: 'one',
    envelope: new Envelope(new Changeable([SECRETS])),
    log: { error: (fault: unknown) => t.fail(String(fault)) },
    registry,
    identify: async (session) => {
      world.asked.push(session)
      return world.subject
    },
  })
  Object.defineProperties(controls.shared, {
    now: { get: () => world.now },
    isBehind: { get: () => world.isBehind },
    isUnread: { get: () => world.isUnread },
    document: { get: () => world.document },
  })
  let version = 0
  return {
    controls,
    world,
    registry,
    /** Some time passes, and what is in force is looked at again. */
    poll: async (ms = 0): Promise<void> => {
      world.now += ms
      await controls.shared.catchUp()
    },
    /** The controls are these from now on, and all of them are new; undefined ones stay as they were. */
    set: async (values: Readonly<Record<string, Control['value'] | undefined>>): Promise<void> => {
      const before = world.document
      world.document = new Map(
        Object.entries(values).map(([name, value]) => {
          const kept = before.get(name)
          return [
            name,
            value === undefined && kept ? kept : { version: ++version, at: world.now, value: value ?? null },
          ]
        }),
      )
      await controls.shared.catchUp()
    },
  }
}
