import type { FastifyBaseLogger } from 'fastify'
import type { Envelope } from '../sessions/index.ts'
import { CONTROLS_KEY } from '../store/keys.ts'
import type { SessionIndex } from '../store/session-index.ts'
import { markOf } from '../store/marked-reading.ts'
import type { SharedDocument } from '../store/shared-document.ts'
import { SharedState } from '../store/shared-state.ts'
import { StoreUnavailable, wasSent, type ConfirmableWrites, type Store } from '../store/store.ts'
import { beforeDeadline } from '../time/deadline.ts'
import { polls } from '../time/polls.ts'
import { standstill } from '../time/standstill.ts'
import { storeNow } from '../time/store-time.ts'
import {
  isSame,
  merged,
  parseControls,
  textOf,
  tidied,
  versionOf,
  type Control,
  type ControlDocument,
} from './control-document.ts'
import { InstanceReports, type InstanceReport } from './instance-reports.ts'
import { idOf, newMark, randomId, sealedPart, statedVersion } from './stored-text.ts'

/**
 * All instances must obey within a second. A channel would be faster, but its messages may be lost, so that the document would
 * have to be read as often all the same.
 */
const POLL_MS = 300
/** A document that was read longer ago is read again before an order is sent: this process may have slept meanwhile. */
const MAX_AGE_MS = 800
/**
 * A store that has not replied for this long counts as away, so that no order waits longer for it: one master of a Cluster has the
 * document, and may be silent while the others serve.
 */
const SILENT_MS = 900
/** Of two changes that are no further apart it is not known which came first: the clock of the store is known no better. */
const SAME_MOMENT_MS = 1000
/**
 * While versions or secrets are rolled out, instances differ in what they would write, so they do not write it all the time: each
 * seals the document anew once for each list of its secrets, and then this often.
 */
const RESEAL_MS = 60_000
/** The document stays until it is replaced. */
const KEPT_MS = 10 * 365 * 86_400_000
/** Made into a key together with a server secret. The document has no holder with a secret of its own. */
const PURPOSE = 'controls of operators'

const NOT_READ = 'controls have not been read yet: this instance sends no orders and shows no notice'
const UNREADABLE =
  'controls cannot be read: no secret of this instance opens them (SESSION_SECRETS), or another version wrote them'

/** The parts that the controls of an instance work with. */
export interface SharedControlsDependencies {
  readonly store: Pick<Store, 'readMarked' | 'onChange'> & ConfirmableWrites
  /** For writes that must outlive a failover; the store itself where no replica needs to confirm. */
  readonly confirmed: ConfirmableWrites
  readonly index: SessionIndex
  readonly envelope: Envelope
  /** Names this instance for operators. */
  readonly instance: string
  readonly log: Pick<FastifyBaseLogger, 'error'>
  /** Called after each change of the document, and after each poll, since controls end by themselves. */
  readonly onChange: () => void
}

/** A change that was made here, and of which the store may not know. */
interface Untold {
  /** When it was made (monotonic ms), by {@link Control.at}. */
  readonly at: number
  /** The version that it replaced, of those that the store had. */
  readonly over: number
}

/** The outcome of a change. */
export type Changed =
  /** The change has an effect here. `isShared` tells whether the store has it, so that all instances learn of it. */
  { readonly is: 'changed'; readonly version: number; readonly isShared: boolean } | { readonly is: 'refused' }

/**
 * The controls of this instance and, through the store, of all others. Each instance reads the document several times a second.
 * It writes its own version back to a store that has forgotten it, or has an older one.
 */
export class SharedControls {
  readonly #reports: InstanceReports
  readonly #deps: SharedControlsDependencies
  readonly #state: SharedState<ControlDocument>
  /** The changes of which the store may not know, by the names of the controls. */
  readonly #untold = new Map<string, Untold>()
  /** Whether the store has more than is kept, as version 0.3 writes it. */
  #isUntidy = false
  /** When the document was last found as this instance writes it. */
  #currentAt = -Infinity
  /** The secrets ({@link Envelope.prints}) under whose first one the document has been since this instance had them. */
  #sealedFor = ''
  /** The document that was read or written last, and what the marks of all its texts begin with. */
  #content: { readonly document?: ControlDocument; readonly id: string } = { id: '' }
  /** When an order last waited for the store in vain (ms of the clock of {@link standstill}). */
  #silentAt = -Infinity
  /** A fault that the log has. */
  #logged: unknown
  /** Whether the log has it that others may have written what cannot be opened here. */
  #isUnreadLogged = false
  #isReporting = false
  #isOpen = false
  #endPolls: () => void = () => undefined

  constructor(deps: SharedControlsDependencies) {
    this.#deps = deps
    this.#reports = new InstanceReports(deps.index, deps.instance)
    const form = {
      nothing: new Map<string, Control>(),
      parse: (text: string, now: number) => this.#parse(text, now),
      format: (document: ControlDocument) => this.#format(document),
      ttlMs: KEPT_MS,
      upkeep: {
        merge: (own: ControlDocument, read: ControlDocument, now: number) => this.#merge(own, read, now),
        isOutdated: (text: string) => this.#isOutdated(text),
      },
    }
    this.#state = new SharedState<ControlDocument>(form, deps.onChange, this.#stored)
    // A store that is back has what this instance has not heard of.
    deps.store.onChange((key) => void (key === undefined && this.#isOpen && this.#poll()))
  }

  get document(): ControlDocument {
    return this.#state.current
  }

  /** The store's clock, as far as this process knows it (epoch ms). */
  get now(): number {
    return this.#state.now
  }

  /** Whether the document is too old for an order to be sent: {@link catchUp} first. */
  get isBehind(): boolean {
    const { knownAt } = this.#state
    const at = knownAt === -Infinity ? knownAt : Math.max(knownAt, this.#silentAt)
    return standstill.lookedAt - at > MAX_AGE_MS
  }

  /** Whether others may have been told of what is not known here: the document was never read, or it cannot be opened. */
  get isUnread(): boolean {
    const { version, isReadable } = this.#state
    if (version === undefined || isReadable) return version === undefined
    // One that is empty, or that was only sealed anew, says nothing new.
    return statedVersion(version) !== 0 && idOf(version) !== this.#content.id
  }

  /** Faults that an operator should know of. */
  get warnings(): string[] {
    if (this.#state.version === undefined) return [NOT_READ]
    if (this.#state.isReadable) return []
    return [this.isUnread ? `${UNREADABLE}; this instance sends no orders` : UNREADABLE]
  }

  /** Reads the document, and again and again from now on. */
  async open(): Promise<void> {
    this.#isOpen = true
    await this.#poll()
    this.#endPolls = polls(() => this.#poll(), POLL_MS)
  }

  /**
   * Reads the document. Callers that ask before the read begins share it. While the store is away or silent, the last document
   * that was read stays in force. Never rejects.
   */
  catchUp(): Promise<void> {
    const caughtUp = this.#poll(true)
    // After a standstill a pause may have been missed, so a slow store is waited for.
    if (this.#state.knownAt === -Infinity) return caughtUp
    return beforeDeadline(SILENT_MS, caughtUp).catch(() => void (this.#silentAt = standstill.now()))
  }

  /**
   * Makes a change, which has an effect here even if the store is away. Never rejects because of that.
   * @param change makes the next version of one control; undefined for a change that must not be made. `now` and `askedAt`, when
   * it was asked for, are by the store's clock
   * @param sinceMs how long ago it was asked for
   * @param mayReplace whether it replaces a document that cannot be opened
   */
  async change(
    change: (version: number, now: number, askedAt: number) => readonly [name: string, control: Control] | undefined,
    sinceMs = 0,
    mayReplace = false,
  ): Promise<Changed> {
    const askedAt = performance.now() - sinceMs
    let version = 0
    let isRefused = false
    const { isShared, cause } = await this.#state.change((document, now) => {
      version = this.#nextVersion(document, now)
      const aheadMs = now - performance.now()
      const next = change(version, now, askedAt + aheadMs)
      isRefused = next === undefined
      if (next === undefined) return document
      const [name, control] = next
      const over = this.#untold.get(name)?.over ?? document.get(name)?.version ?? 0
      this.#untold.set(name, { at: control.at - aheadMs, over })
      return tidied(new Map(document).set(name, control), now)
    }, mayReplace)
    if (cause !== undefined && !(cause instanceof StoreUnavailable)) throw cause
    return isRefused ? { is: 'refused' } : { is: 'changed', version, isShared }
  }

  /** Names this instance for operators. */
  get instance(): string {
    return this.#reports.instance
  }

  /** The instances that have reported lately. @throws StoreUnavailable */
  async reports(): Promise<InstanceReport[]> {
    const { isRead, cause } = await this.#state.read()
    if (!isRead) throw cause
    await this.#report()
    return this.#reports.list()
  }

  /** Ends the polls. Other instances see that this one is gone. Never rejects. */
  async close(): Promise<void> {
    this.#isOpen = false
    this.#endPolls()
    await this.#state.close()
    await this.#reports.close()
  }

  /** Never rejects. @param isAsked whether callers wait for it */
  async #poll(isAsked = false): Promise<void> {
    try {
      const { isRead, cause } = await this.#state.read(isAsked)
      if (cause !== undefined && !(cause instanceof StoreUnavailable)) throw cause
      const isUnread = !this.#state.isReadable && this.isUnread
      if (isUnread && !this.#isUnreadLogged) {
        this.#deps.log.error({ why: UNREADABLE }, 'this instance sends no orders: it cannot read the controls')
      }
      this.#isUnreadLogged = isUnread
      // Nobody waits for it: another master of a Cluster may have the reports, and be silent. The next polls find it under way.
      if (isRead && this.#state.isReadable && !this.#isReporting) {
        this.#isReporting = true
        void this.#report()
          .catch((error: unknown) => this.#noteFault(error))
          .finally(() => (this.#isReporting = false))
      }
    } catch (error) {
      this.#noteFault(error)
    }
  }

  #noteFault(error: unknown): void {
    // Callers that have shared a read share its fault.
    if (error instanceof StoreUnavailable || error === this.#logged) return
    this.#logged = error
    this.#deps.log.error({ err: error }, 'controls could not be read, written or reported')
  }

  /** @throws StoreUnavailable */
  #report(): Promise<void> {
    return this.#reports.report(versionOf(this.document), this.#state.version ?? '', storeNow())
  }

  get #stored(): SharedDocument {
    const { store, confirmed } = this.#deps
    return {
      async read(known = '') {
        const { value = '', isKnown, now } = await store.readMarked(CONTROLS_KEY, markOf(known))
        return isKnown ? { version: known, text: undefined, now } : { version: value, text: value, now }
      },
      write: async (before, text, ttlMs) => {
        const until = storeNow() + ttlMs
        const { prints } = this.#deps.envelope
        const mustReseal = !this.#deps.envelope.isCurrent(sealedPart(before))
        const write = (to: ConfirmableWrites) =>
          before === '' ? to.create(CONTROLS_KEY, text, until) : to.replace(CONTROLS_KEY, before, text, until)
        const isWritten = await write(confirmed).catch(async (error: unknown) => {
          // It is known that no replica confirms, so it was not written: the others must obey, and open it, all the same.
          if (!wasSent(error) && (mustReseal || this.#untold.size > 0)) await write(store)
          throw error
        })
        if (!isWritten) return undefined
        this.#untold.clear()
        this.#isUntidy = false
        this.#noteCurrent(prints)
        return text
      },
      close: () => undefined,
    }
  }

  #parse(text: string, now: number): ControlDocument | undefined {
    const opened = this.#deps.envelope.open(CONTROLS_KEY, PURPOSE, sealedPart(text))
    const document = opened && parseControls(opened)
    if (!document) return undefined
    const kept = tidied(document, now)
    this.#isUntidy = kept !== document
    this.#content = { document: kept, id: idOf(text) }
    return kept
  }

  #format(document: ControlDocument): string {
    if (document !== this.#content.document) this.#content = { document, id: randomId() }
    return `${newMark(this.#content.id, versionOf(document))} ${this.#deps.envelope.seal(CONTROLS_KEY, PURPOSE, textOf(document))}`
  }

  /**
   * Of each control the higher version. What was changed here without knowledge of a document wins over what is older there. In doubt
   * orders are paused.
   */
  #merge(own: ControlDocument, read: ControlDocument, now: number): ControlDocument {
    const renewed = new Map(own)
    const version = versionOf(read) + 1
    for (const [name, untold] of this.#untold) {
      const at = Math.round(untold.at + now - performance.now())
      const mine = own.get(name)
      const theirs = read.get(name)
      const isKnown = theirs !== undefined && theirs.version <= untold.over
      const isUndone = mine?.value === null && theirs !== undefined && theirs.value !== null
      const isTheirsLater = theirs !== undefined && theirs.at > at + (isUndone ? -1 - SAME_MOMENT_MS : SAME_MOMENT_MS)
      if (mine === undefined || isSame(mine, theirs) || (isTheirsLater && !isKnown)) {
        this.#untold.delete(name)
        // Its version may be lower, where more than one change a second was made here.
        if (isUndone) renewed.set(name, theirs)
      } else if (mine.version < version) renewed.set(name, { ...mine, version, at })
    }
    const both = merged(renewed, read, now)
    return textOf(both) === textOf(read) ? read : both
  }

  /** Whether the store has the document untidy, or under a secret that will be removed. */
  #isOutdated(text: string): boolean {
    const { envelope } = this.#deps
    if (envelope.isCurrent(sealedPart(text)) && !this.#isUntidy) {
      this.#noteCurrent(envelope.prints)
      return false
    }
    // Whoever takes a step of a rotation last must not leave the document under a secret that goes in the next one.
    return this.#sealedFor !== envelope.prints || performance.now() - this.#currentAt >= RESEAL_MS
  }

  #noteCurrent(prints: string): void {
    this.#sealedFor = prints
    this.#currentAt = performance.now()
  }

  /**
   * Higher than all that is known, be it only by the mark of a document that cannot be opened, and than what others may know: they
   * do not make a change a second for long.
   */
  #nextVersion(document: ControlDocument, now: number): number {
    const known = Math.max(versionOf(document), statedVersion(this.#state.version))
    return Math.max(known, Math.floor(now / 1000)) + 1
  }
}
