import { randomBytes } from 'node:crypto'
import { CONTROLLED_KEY } from '../store/keys.ts'
import type { SessionIndex } from '../store/session-index.ts'

/** How often an instance says which version it obeys, and for how long that counts. */
const REPORT_MS = 10_000
const REPORTED_MS = 30_000

/** An instance, and the version that it obeyed when it last said so. */
export interface InstanceReport {
  readonly instance: string
  readonly version: number
  /** Epoch ms by the store's clock. */
  readonly seenAt: number
}

/** The instances of a store, each with the version of the controls that it obeys. */
export class InstanceReports {
  readonly instance: string
  readonly #id = randomBytes(9).toString('base64url')
  readonly #index: SessionIndex
  /** What was reported last, and when. */
  #last = { version: -1, stored: '', at: -Infinity }
  #turn: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** @param instance names this instance for operators */
  constructor(index: SessionIndex, instance: string) {
    this.#index = index
    this.instance = instance
  }

  /**
   * Says which version this instance obeys, if that is due: one report after the other.
   * @param stored names what the store has: one that has forgotten the controls, which another instance may have written back, has
   * forgotten the reports, too
   * @throws StoreUnavailable
   */
  report(version: number, stored: string, now: number): Promise<void> {
    const report = this.#turn.then(async () => {
      const isKnown = version === this.#last.version && stored === this.#last.stored
      if ((isKnown && performance.now() - this.#last.at < REPORT_MS) || this.#isClosed) return
      const value = `${version}@${this.instance}`
      await this.#index.add(CONTROLLED_KEY, { id: this.#id, value, expiresAt: now + REPORTED_MS }, 0)
      this.#last = { version, stored, at: performance.now() }
    })
    this.#turn = report.catch(() => undefined)
    return report
  }

  /** The reports that count. @throws StoreUnavailable */
  async list(): Promise<InstanceReport[]> {
    const entries = await this.#index.list(CONTROLLED_KEY)
    return entries.map(({ value, expiresAt }) => {
      const [version, instance = ''] = value.split('@')
      return { instance, version: Number(version), seenAt: expiresAt - REPORTED_MS }
    })
  }

  /** Takes back the report of this instance, and makes no other. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#turn
    await this.#index.remove(CONTROLLED_KEY, [this.#id]).catch(() => undefined)
  }
}
