import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { Changeable } from '../../../src/config/changing.ts'
import type { Control, ControlDocument } from '../../../src/controls/control-document.ts'
import { SharedControls, type Changed } from '../../../src/controls/shared-controls.ts'
import { Envelope } from '../../../src/sessions/index.ts'
import { CONTROLS_KEY } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { SessionIndex } from '../../../src/store/session-index.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { instanceName } from '../../../src/telemetry/log.ts'
import { SECRETS } from '../server/test-server.ts'

/** In milliseconds. */
export const DAY = 86_400_000
export const PAUSE = { closing: true }

const PURPOSE = 'controls of operators'

/** What is special about one instance. */
export interface Own {
  isCutOff?: boolean
  /** It reads, and each of its writes fails, which this counts: no replica confirms. */
  failedWrites?: number | undefined
  index?: SessionIndex
  onChange?: () => void
  secrets?: Changeable<readonly string[]>
  /** The errors of its log. Without this it must have none. */
  logged?: unknown[]
}

/** A store that the instances of a test share, and that each of them may be cut off from. */
export async function sharing(t: Test) {
  const store = new MemoryStore()
  const index = await store.openIndex()
  const start = async (own: Own = {}) => {
    const reached = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
      return async (...args: A): Promise<R> => {
        if (own.isCutOff) throw new StoreUnavailable(new Error('cut off'))
        return call(...args)
      }
    }
    const confirmed = <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
      reached(async (...args: A): Promise<R> => {
        if (own.failedWrites === undefined) return call(...args)
        own.failedWrites++
        throw new StoreUnavailable(new Error('not confirmed'))
      })
    const controls = new SharedControls({
      store: {
        readMarked: reached((...args) => store.readMarked(...args)),
        onChange: () => undefined,
        create: reached((...args: Parameters<MemoryStore['create']>) => store.create(...args)),
        replace: reached((...args: Parameters<MemoryStore['replace']>) => store.replace(...args)),
      },
      confirmed: Object.assign(Object.create(store) as MemoryStore, {
        create: confirmed((...args: Parameters<MemoryStore['create']>) => store.create(...args)),
        replace: confirmed((...args: Parameters<MemoryStore['replace']>) => store.replace(...args)),
      }),
      index: own.index ?? index,
      instance: instanceName(),
      envelope: new Envelope(own.secrets ?? new Changeable([SECRETS])),
      log: { error: (fault: unknown) => void (own.logged?.push(fault) ?? t.fail(String(fault))) },
      onChange: () => own.onChange?.(),
    })
    t.teardown(() => controls.close())
    await controls.open()
    return controls
  }
  const write03 = async (document: readonly (readonly [string, Control])[], secret?: string): Promise<void> => {
    await store.remove(CONTROLS_KEY)
    await store.create(CONTROLS_KEY, writtenBy03(document, secret), Date.now() + DAY)
  }
  const text = async (): Promise<string> => (await store.readUntracked(CONTROLS_KEY))?.value ?? ''
  return { index, start, write03, text }
}

export const set = (controls: SharedControls, value: typeof PAUSE | null, at = (now: number) => now) =>
  controls.change((version, now) => ['orders', { version, at: Math.floor(at(now)), value }])

export const versionIn = (changed: Changed): number => (changed.is === 'changed' ? changed.version : Number.NaN)

export const isPaused = ({ document }: SharedControls): boolean => Boolean(document.get('orders')?.value)

/** The text that version 0.3 writes for a document. */
export function writtenBy03(document: readonly (readonly [string, Control])[], secret = SECRETS): string {
  const envelope = new Envelope(new Changeable([secret]))
  const mark = randomBytes(6).toString('base64url')
  return `${mark} ${envelope.seal(CONTROLS_KEY, PURPOSE, JSON.stringify(document))}`
}

/** What version 0.3 reads in a text: it takes what follows the first space. */
export function readBy03(text: string): ControlDocument {
  const envelope = new Envelope(new Changeable([SECRETS]))
  const opened = envelope.open(CONTROLS_KEY, PURPOSE, text.slice(text.indexOf(' ') + 1))
  return new Map(JSON.parse(opened ?? '[]') as [string, Control][])
}
