import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { FastifyBaseLogger } from 'fastify'
import type { Envelope } from '../sessions/index.ts'
import { CONTROLLED_KEY, CONTROLS_KEY } from '../store/keys.ts'
import type { SessionIndex } from '../store/session-index.ts'
import { StoreUnavailable, type ConfirmableWrites, type SharedState } from '../store/store.ts'
import { polls } from '../time/polls.ts'
import { standstill } from '../time/standstill.ts'
import {
  merged,
  parseControls,
  textOf,
  tidied,
  versionOf,
  type Control,
  type ControlDocument,
} from './control-document.ts'

/**
 * All instances must obey within a second. A channel would be faster, but its messages may be lost, so that the document would
 * have to be read as often all the same.
 */
const POLL_MS = 300
/** A document that was read longer ago is read again before an order is sent: this process may have slept meanwhile. */
const MAX_AGE_MS = 800
/** A read that takes longer shows that this process slept during it: the document may be as old as the read's start. */
const MAX_READ_MS = 2000
/** Of two changes that are no further apart it is not known which came first: the clock of the store is known no better. */
const SAME_MOMENT_MS = 1000
const NOT_REPORTED = { version: -1, at: -Infinity }
/** How often an instance says which version it has, and for how long that counts. */
const REPORT_MS = 10_000
const REPORTED_MS = 30_000
/** While versions or secrets are rolled out, instances differ in what they would write, so they do not write it all the time. */
const RESEAL_MS = 60_000
/** The document stays until it is replaced. */
const KEPT_MS = 10 * 365 * 86_400_000
/** How often a change is tried if other instances are faster. Each time, one of them has made its change. */
const MAX_TRIES = 20
/** Made into a key together with a server secret. The document has no holder with a secret of its own. */
const PURPOSE = 'controls of operators'

const NOTHING: ControlDocument = new Map()

/** What the controls of an instance work with. */
export interface SharedControlsDependencies {
  readonly store: Pick<SharedState, 'readMarked'>
  /** For writes that must outlive a failover; the store itself where no replica needs to confirm. */
  readonly confirmed: ConfirmableWrites
  readonly index: SessionIndex
  readonly envelope: Envelope
  readonly log: Pick<FastifyBaseLogger, 'error'>
  /** Called after each change of the document, and after each poll, since controls end by themselves. */
  readonly onChange: () => void
}

/** An instance, and the version that it obeyed when it last said so. */
export interface InstanceReport {
  readonly instance: string
  readonly version: number
  /** Epoch ms by the store's clock. */
  readonly seenAt: number
}

/** What the store holds. */
interface Stored {
  readonly text: string
  /** Undefined if no secret of this instance opens it. */
  readonly document: ControlDocument | undefined
  /** Whether it has more than is kept, as version 0.3 writes it. */
  readonly isUntidy?: boolean
}

/** Makes the next version of one control. Undefined for a change that must not be made. */
export type Change = (version: number, now: number) => readonly [name: string, control: Control] | undefined

/** The outcome of a change. */
export type Changed =
  /** The change has an effect here. `isShared` tells whether the store has it, so that all instances learn of it. */
  { readonly is: 'changed'; readonly version: number; readonly isShared: boolean } | { readonly is: 'refused' }

/**
 * The controls of this instance and, through the store, of all others. Each instance reads the document several times a second.
 * It writes its own version back to a store that has forgotten it, or has an older one.
 */
export class SharedControls {
  /** Names this instance for operators: its host, its process, and a word for several in one process. */
  readonly instance = `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`
  readonly #id = randomBytes(9).toString('base64url')
  readonly #deps: SharedControlsDependencies
  #document = NOTHING
  #stored: Stored | undefined
  #hasRead = false
  /** The store may not have all that this instance has, or not on its replicas. */
  #isUnconfirmed = false
  /** What was changed here and may be unknown to the store: when, by the names of the controls (monotonic ms). */
  readonly #untold = new Map<string, number>()
  /** The store's clock less the monotonic clock of this process (ms). Never more than that, so that no control ends early. */
  #aheadMs = Date.now() - performance.now()
  /** Since when the document may have changed without this instance knowing of it (ms of the clock of {@link standstill}). */
  #knownAt = -Infinity
  /** The standstills of this process before it last asked for the document. */
  #heardAfter = standstill.count
  /** The read for those who ask for one now. Undefined once it has begun. */
  #nextRead: Promise<void> | undefined
  #reported = NOT_REPORTED
  #resealedAt = -Infinity
  #turn: Promise<unknown> = Promise.resolve()
  #endPolls: () => void = () => undefined

  constructor(deps: SharedControlsDependencies) {
    this.#deps = deps
  }

  get document(): ControlDocument {
    return this.#document
  }

  /** The store's clock, as far as this process knows it (epoch ms). */
  get now(): number {
    return performance.now() + this.#aheadMs
  }

  /** Whether the document is too old for an order to be sent: {@link catchUp} first. */
  get isBehind(): boolean {
    return standstill.count !== this.#heardAfter || standstill.lookedAt - this.#knownAt > MAX_AGE_MS
  }

  /** What an operator should know. */
  get warnings(): string[] {
    if (!this.#hasRead) return ['controls have not been read yet: this instance pauses no orders and shows no notice']
    if (this.#stored === undefined || this.#stored.document !== undefined) return []
    return [
      'controls cannot be read: no secret of this instance opens them (SESSION_SECRETS), or another version wrote them',
    ]
  }

  /** Reads the document, and again and again from now on. */
  async open(): Promise<void> {
    await this.#poll()
    this.#endPolls = polls(() => this.#poll(), POLL_MS)
  }

  /**
   * Reads the document. Callers that ask before the read begins share it. While the store is away, the last document that was
   * read stays in force. Never rejects.
   */
  catchUp(): Promise<void> {
    this.#nextRead ??= this.#poll(true)
    return this.#nextRead
  }

  /** Makes a change, which has an effect here even if the store is away. Never rejects because of that. */
  change(change: Change): Promise<Changed> {
    return this.#exclusively(async () => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const isReadable = await this.#tryRead()
        const version = this.#nextVersion()
        const next = change(version, this.now)
        if (next === undefined) return { is: 'refused' }
        this.#document = tidied(new Map(this.#document).set(...next), this.now)
        this.#untold.set(next[0], performance.now())
        this.#isUnconfirmed = true
        this.#deps.onChange()
        if (!isReadable) return { is: 'changed', version, isShared: false }
        const isWritten = await this.#tryWrite()
        if (isWritten !== false) return { is: 'changed', version, isShared: isWritten === true }
      }
      return { is: 'changed', version: versionOf(this.#document), isShared: false }
    })
  }

  /** The instances that have reported lately. @throws StoreUnavailable */
  async reports(): Promise<InstanceReport[]> {
    await this.#exclusively(async () => {
      await this.#read()
      await this.#report()
    })
    const entries = await this.#deps.index.list(CONTROLLED_KEY)
    return entries.map(({ value, expiresAt }) => {
      const [version, instance = ''] = value.split('@')
      return { instance, version: Number(version), seenAt: expiresAt - REPORTED_MS }
    })
  }

  /** Ends the polls. Other instances see that this one is gone. Never rejects. */
  async close(): Promise<void> {
    this.#endPolls()
    await this.#exclusively(() => this.#deps.index.remove(CONTROLLED_KEY, [this.#id])).catch(() => undefined)
  }

  /** Never rejects. @param isAsked whether callers wait for it: what they do next may rely on it, however long it took */
  async #poll(isAsked = false): Promise<void> {
    await this.#exclusively(async () => {
      if (isAsked) this.#nextRead = undefined
      const [heardAfter, askedAt] = [standstill.count, standstill.now()]
      const isRead = await this.#tryRead()
      const tookMs = standstill.now() - askedAt
      const mayBeOld = isRead && (!isAsked || tookMs > MAX_READ_MS)
      this.#knownAt = mayBeOld ? askedAt : askedAt + tookMs
      // A standstill is over only for those who have asked, though the store was away: the first after it was back must hear of
      // a pause.
      if (isRead || isAsked) this.#heardAfter = heardAfter
      if (!isRead) return
      if (this.#mustWrite()) await this.#tryWrite()
      await unlessDown(this.#report())
    }).catch((error: unknown) =>
      this.#deps.log.error({ err: error }, 'controls could not be read, written or reported'),
    )
    this.#deps.onChange()
  }

  /** Returns false while the store is away, and while what it has cannot be opened or understood here. */
  async #tryRead(): Promise<boolean> {
    if ((await unlessDown(this.#read())) === undefined) return false
    return this.#stored === undefined || this.#stored.document !== undefined
  }

  /** @throws StoreUnavailable */
  async #read(): Promise<true> {
    const { store, envelope } = this.#deps
    // What could not be opened is read anew each time: the secret for it may have come since, from its file.
    const known = this.#stored?.document === undefined ? undefined : this.#stored
    const { value, isKnown, now } = await store.readMarked(CONTROLS_KEY, known === undefined ? '' : markOf(known.text))
    // The clock was read before this moment, so it is at least as late as that now.
    this.#aheadMs = now - performance.now()
    this.#hasRead = true
    if (isKnown) return true
    const opened = value && envelope.open(CONTROLS_KEY, PURPOSE, sealedPart(value))
    const document = opened ? understood(opened) : undefined
    const held = tidied(document ?? NOTHING, now)
    // If the store has forgotten the document, which another instance may have written back, it has forgotten the reports, too.
    if (value !== this.#stored?.text) this.#reported = NOT_REPORTED
    this.#stored = value === undefined ? undefined : { text: value, document, isUntidy: held !== (document ?? NOTHING) }
    this.#renewUntold(held)
    this.#document = merged(this.#document, held, now)
    if (textOf(held) !== textOf(this.#document)) this.#isUnconfirmed = true
    // At once: an instance must not report a version before it obeys it.
    this.#deps.onChange()
    return true
  }

  /**
   * Higher than all that is known, be it only by the mark of a document that cannot be opened, and than what others may know: they
   * do not make a change a second for long.
   */
  #nextVersion(): number {
    const known = Math.max(versionOf(this.#document), statedVersion(this.#stored?.text))
    return Math.max(known, Math.floor(this.now / 1000)) + 1
  }

  /** What was changed here without knowledge of a document wins all the same over what is older there. */
  #renewUntold(document: ControlDocument): void {
    const version = versionOf(document) + 1
    for (const [name, changedAt] of this.#untold) {
      const own = this.#document.get(name)
      const theirs = document.get(name)
      const at = Math.floor(changedAt + this.#aheadMs)
      const isTheirsLater = theirs !== undefined && theirs.at > at + SAME_MOMENT_MS
      if (own === undefined || own.version === theirs?.version || isTheirsLater) this.#untold.delete(name)
      else if (own.version < version) this.#document = new Map(this.#document).set(name, { ...own, version, at })
    }
  }

  /** Whether the store has less than this instance, or has it untidy, or under a secret that will be removed. */
  #mustWrite(): boolean {
    if (this.#stored === undefined || this.#isUnconfirmed) return true
    if (this.#deps.envelope.isCurrent(sealedPart(this.#stored.text)) && this.#stored.isUntidy !== true) return false
    return performance.now() - this.#resealedAt >= RESEAL_MS
  }

  /** Returns false if another instance was faster, and undefined while the store is away. */
  async #tryWrite(): Promise<boolean | undefined> {
    const { confirmed, envelope } = this.#deps
    const mark = `${randomBytes(6).toString('base64url')}.${versionOf(this.#document)}`
    const text = `${mark} ${envelope.seal(CONTROLS_KEY, PURPOSE, textOf(this.#document))}`
    const until = Math.floor(this.now) + KEPT_MS
    this.#resealedAt = performance.now()
    const isWritten = await unlessDown(
      this.#stored === undefined
        ? confirmed.create(CONTROLS_KEY, text, until)
        : confirmed.replace(CONTROLS_KEY, this.#stored.text, text, until),
    )
    if (isWritten === true) {
      this.#stored = { text, document: this.#document }
      this.#isUnconfirmed = false
      this.#untold.clear()
    }
    return isWritten
  }

  /** Says which version this instance obeys. @throws StoreUnavailable */
  async #report(): Promise<void> {
    const version = versionOf(this.#document)
    const isDue = performance.now() - this.#reported.at >= REPORT_MS
    if (version === this.#reported.version && !isDue) return
    const expiresAt = Math.floor(this.now) + REPORTED_MS
    const value = `${version}@${this.instance}`
    await this.#deps.index.add(CONTROLLED_KEY, { id: this.#id, value, expiresAt }, 0)
    this.#reported = { version, at: performance.now() }
  }

  /** One after the other: a change must not be based on what a poll is about to replace. */
  #exclusively<Result>(task: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(task)
    this.#turn = turn.catch(() => undefined)
    return turn
  }
}

/** The first word of a stored text. */
function markOf(text: string): string {
  return text.split(' ', 1)[0] ?? ''
}

/** The version of a stored document, which its mark states for those who cannot open it. 0 where version 0.3 wrote it. */
function statedVersion(text = ''): number {
  return Number(/^[\w-]+\.(\d{1,15})$/.exec(markOf(text))?.[1] ?? 0)
}

function sealedPart(text: string): string {
  return text.slice(markOf(text).length + 1)
}

/** Undefined while the store is away. */
async function unlessDown<Result>(asked: Promise<Result>): Promise<Result | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof StoreUnavailable) return undefined
    throw error
  }
}

/** Undefined for what this version does not understand. */
function understood(text: string): ControlDocument | undefined {
  try {
    return parseControls(text)
  } catch {
    return undefined
  }
}
