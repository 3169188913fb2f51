import type { Registry } from 'prom-client'
import { Changeable } from '../config/changing.ts'
import type { Session } from '../sessions/index.ts'
import { createControlsMetrics, type ControlsMetrics } from '../telemetry/controls-metrics.ts'
import {
  isInForce,
  isSame,
  NOTICE,
  ORDERS,
  ordersOf,
  subjectOf,
  versionOf,
  type ControlDocument,
  type Notice,
  type OrdersPause,
} from './control-document.ts'
import { Identification, type Identify } from './identification.ts'
import { SharedControls, type SharedControlsDependencies } from './shared-controls.ts'

/** Why the orders of a session may not be sent. */
export type Verdict = Paused | Unidentified | Unread

interface Paused {
  readonly is: 'paused'
  /** The operator's words to the user. */
  readonly message: string | undefined
  /** When they may be sent again (epoch ms by the store's clock); Infinity where that is not known. */
  readonly until: number
  /** Whether the user may close what was bought before. */
  readonly closing: boolean
}

/**
 * Not known yet: the controls were not read lately, or orders of some subjects are paused and the session's is unknown.
 * Call {@link Controls.identify} first.
 */
interface Unidentified {
  readonly is: 'unidentified'
}

/** Not known: this process has never read the controls, since their store is away, or cannot open what others have written. */
interface Unread {
  readonly is: 'unread'
}

/** What pages get of the controls, beside the state of their session. Texts are shown as texts; `until` is in epoch seconds. */
interface ControlsState {
  readonly notice?: { readonly message: string; readonly until?: number }
  /** While the orders of the session's user are paused. */
  readonly orders_paused?: { readonly message?: string; readonly until?: number; readonly closing: boolean }
}

interface ControlsDependencies extends Omit<SharedControlsDependencies, 'onChange'> {
  readonly registry: Registry
  readonly identify: Identify
}

const UNIDENTIFIED: Unidentified = { is: 'unidentified' }
const UNREAD: Unread = { is: 'unread' }

/**
 * Whether orders may be sent, and the notice that all users get. It exists only where operators can change that (OPS_TOKEN). A
 * lookup is made in memory.
 */
export class Controls {
  readonly shared: SharedControls
  readonly metrics: ControlsMetrics
  readonly #identification: Identification
  #all: OrdersPause | undefined
  readonly #subjects = new Map<string, OrdersPause>()
  /** The pause of a subject forbids closing, too. */
  #forbidsClosing = false
  readonly #notice = new Changeable<Notice | undefined>(undefined)
  /** The document from which the pauses were taken. */
  #document: ControlDocument = new Map()
  #isUnread = false
  /** The names of the pauses that the last change has begun or altered. */
  readonly #begun = new Changeable<ReadonlySet<string>>(new Set())
  /** Tells the pauses that are in force from others. */
  readonly #pauses = new Changeable('')

  constructor({ registry, identify, ...deps }: ControlsDependencies) {
    this.#identification = new Identification(identify)
    this.shared = new SharedControls({ ...deps, onChange: () => this.#refresh() })
    this.metrics = createControlsMetrics(registry, {
      version: () => versionOf(this.shared.document),
      paused: () => ({ all: Number(this.#all !== undefined), subject: this.#subjects.size }),
      notice: () => Number(this.#notice.current !== undefined),
    })
  }

  /** What the page of a session gets of the controls at present, as far as this process knows it. Nobody is asked for it. */
  stateFor(session: Session | undefined): ControlsState {
    const notice = this.#current(this.#notice.current)
    const pause = session && this.#pauseOf(session)
    return {
      ...(notice && { notice: { message: notice.message, ...endOf(notice) } }),
      ...(pause && {
        orders_paused: {
          ...(pause.message !== undefined && { message: pause.message }),
          ...endOf(pause),
          closing: pause.closing,
        },
      }),
    }
  }

  /** Calls a listener whenever the notice has changed. Returns a function that ends this. */
  onNotice(listener: () => void): () => void {
    return this.#notice.onChange(listener)
  }

  /** Calls a listener whenever a pause has begun, has been altered or has ended. Returns a function that ends this. */
  onPauses(listener: () => void): () => void {
    return this.#pauses.onChange(listener)
  }

  /** Calls a listener whenever a pause has begun, or has been altered, that may be one of this session. Returns a function that ends this. */
  onPauseOf({ key, record }: Pick<Session, 'key' | 'record'>, listener: () => void): () => void {
    return this.#begun.onChange(() => {
      const begun = this.#begun.current
      const whose = this.#identification.of({ key, record })
      const isKnown = whose !== undefined && whose !== 'failed'
      if (begun.has(ORDERS) || (isKnown ? begun.has(ordersOf(whose.subject)) : begun.size > 0)) listener()
    })
  }

  /** Why orders of this session may not be sent now; undefined if they may. */
  verdictOn(session: Session): Verdict | undefined {
    if (this.shared.isBehind) return UNIDENTIFIED
    const known = this.#knownVerdictOn(session)
    if (!this.shared.isUnread || known?.is === 'unidentified') return known
    // It was told of a pause itself. Others may have been told of one that forbids closing.
    return known === undefined ? UNREAD : { ...known, closing: false }
  }

  /** Reads controls that are old, or asks whose session it is. Then {@link verdictOn} can say more. Never rejects. */
  identify(session: Session): Promise<void> {
    return this.shared.isBehind ? this.shared.catchUp() : this.#identification.ask(session)
  }

  /** In how many seconds a pause ends by itself; undefined where that is not known. */
  secondsUntil({ until }: Paused): number | undefined {
    return until === Infinity ? undefined : Math.max(1, Math.ceil((until - this.shared.now) / 1000))
  }

  /** Why orders of a session may not be sent, by the controls that this process knows. */
  #knownVerdictOn(session: Session): Paused | Unidentified | undefined {
    if (this.#all === undefined && this.#subjects.size === 0) return undefined
    const all = this.#current(this.#all)
    if (this.#subjects.size === 0) return paused([all])
    const whose = this.#identification.of(session)
    if (whose === undefined) {
      const isEnough = all !== undefined && (!all.closing || !this.#forbidsClosing)
      return isEnough ? paused([all]) : UNIDENTIFIED
    }
    // Nobody is told what is meant for one user.
    const own = whose === 'failed' ? { closing: !this.#forbidsClosing } : this.#subjects.get(whose.subject)
    return paused([all, this.#current(own)])
  }

  /** The pause of a session's orders. That of its own user counts only where the user is known. */
  #pauseOf(session: Session): Paused | undefined {
    const whose = this.#identification.of(session)
    const own = whose === undefined || whose === 'failed' ? undefined : this.#subjects.get(whose.subject)
    return paused([this.#current(this.#all), this.#current(own)])
  }

  /** The same control unless it has ended. */
  #current<Value extends { readonly until?: number | undefined }>(value: Value | undefined): Value | undefined {
    return value !== undefined && (value.until ?? Infinity) > this.shared.now ? value : undefined
  }

  /** Takes over what is in force now. */
  #refresh(): void {
    const { document, now, isUnread } = this.shared
    let notice: Notice | undefined
    let pauses = ''
    this.#all = undefined
    this.#subjects.clear()
    for (const [name, control] of document) {
      if (!isInForce(control, now)) continue
      const subject = subjectOf(name)
      if (name !== NOTICE) pauses += `${name} ${control.version} ${control.at}\n`
      if (name === NOTICE) notice = control.value as Notice
      else if (name === ORDERS) this.#all = control.value as OrdersPause
      else if (subject !== undefined) this.#subjects.set(subject, control.value as OrdersPause)
    }
    this.#forbidsClosing = [...this.#subjects.values()].some(({ closing }) => !closing)
    if (JSON.stringify(notice) !== JSON.stringify(this.#notice.current)) this.#notice.change(notice)
    if (pauses !== this.#pauses.current) this.#pauses.change(pauses)
    // Others may have been told of a pause that cannot be read here.
    if (isUnread && !this.#isUnread) this.#begun.change(new Set([ORDERS]))
    this.#isUnread = isUnread
    const before = this.#document
    if (document === before) return
    this.#document = document
    const begun = [...document].filter(
      ([name, control]) => name !== NOTICE && isInForce(control, now) && !isSame(control, before.get(name)),
    )
    this.#begun.change(new Set(begun.map(([name]) => name)))
  }
}

/** When something ends by itself, as pages get it. */
function endOf({ until = Infinity }: { readonly until?: number | undefined }): { readonly until?: number } {
  return until === Infinity ? {} : { until: Math.floor(until / 1000) }
}

/** All of these at once; undefined where there is none. */
function paused(pauses: readonly (OrdersPause | undefined)[]): Paused | undefined {
  const inForce = pauses.filter((pause) => pause !== undefined)
  if (inForce.length === 0) return undefined
  return {
    is: 'paused',
    message: inForce.find(({ message }) => message !== undefined)?.message,
    until: Math.max(...inForce.map(({ until = Infinity }) => until)),
    closing: inForce.every(({ closing }) => closing),
  }
}
