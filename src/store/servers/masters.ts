import { ADVICE, explained, writeRefusalOf } from './causes.ts'
import type { Connection } from '../links/connection.ts'
import type { MasterServer, RedisLink } from '../links/redis-link.ts'
import { NO_MASTER, type LinkHealth, type StoreLog } from './link-health.ts'
import { MasterProbe, type MasterReport } from './master-probe.ts'
import { NEEDS } from './rights.ts'
import type { WriteRefusal } from '../../telemetry/store-observer.ts'
import { standstill } from '../../time/standstill.ts'
import { Window } from '../../time/window.ts'
import { StoreClock } from './store-clock.ts'

/** Since when a store is unavailable that has never been available. */
const NEVER = -Infinity

type Link = Pick<RedisLink, 'masterNames' | 'masterOf' | 'probe'>
type Health = Pick<LinkHealth, 'downSince' | 'downReason' | 'healthyForMs' | 'noteAlive' | 'noteErrorCode'>

/** Error codes of a server that refuses every write, so that nothing that has to be written in time can be. */
const NO_WRITES = ['MISCONF', 'NOREPLICAS'] as const
/** Error codes of a server that cannot serve for a while. */
const INTERRUPTIONS: ReadonlySet<string> = new Set([...NO_MASTER, ...NO_WRITES, 'BUSY', 'CLUSTERDOWN', 'TRYAGAIN'])

/** How often at most refusals of writes are logged. */
const REFUSAL_LOG_MS = 60_000

/** Why a master does not serve. */
interface Fault {
  readonly code: string
  /** Empty where the code says it all. */
  readonly commands: readonly string[]
}

/**
 * Whether the store serves, and which of its masters do: what the probes found, and whether the link to them is up. A full master
 * serves. One that takes no writes does not, although reads of it are still tried.
 */
export class Masters {
  readonly clock = new StoreClock()
  readonly #link: Link
  readonly #health: Health
  readonly #log: StoreLog
  readonly #probes = new Map<string, MasterProbe>()
  readonly #reports = new Map<string, MasterReport>()
  /** By the name of a master, when it was first heard of, or last failed, whichever is later (monotonic ms). */
  readonly #failedAt = new Map<string, number>()
  readonly #needs = new Set<string>(NEEDS.sessions)
  readonly #refusalLogs = new Window(REFUSAL_LOG_MS)
  #refusedSince: number | undefined
  /** The standstills of this process after which the masters were asked for the time. */
  #standstills = standstill.count
  #hasServed = false
  /** Whether the rights have yet to be warned of, since a master has not told them. */
  #owesRights = false
  /** The faults that were logged last. */
  #logged = ''

  constructor(link: Link, health: Health, log: StoreLog) {
    this.#link = link
    this.#health = health
    this.#log = log
  }

  /** From now on a master also needs what the indexes do. */
  needIndexes(): void {
    for (const name of NEEDS.subjects) this.#needs.add(name)
  }

  /** Asks a master that is connected. @throws Error where it does not reply, or is none */
  async opened(master: MasterServer, connection: Connection): Promise<void> {
    const probe = new MasterProbe()
    this.#probes.set(master.name, probe)
    const report = await probe.ask(master, connection)
    if (report === undefined) return
    if (NO_MASTER.has(report.refusal ?? '')) throw new Error(report.refusal)
    this.note(master.name, report)
  }

  /** Asks it again. @throws Error where it does not reply */
  async ask(master: MasterServer, connection: Pick<Connection, 'eval' | 'isReady' | 'ping'>): Promise<void> {
    const probe = this.#probes.get(master.name) ?? new MasterProbe()
    this.#probes.set(master.name, probe)
    const report = await probe.ask(master, connection)
    // It was given up since it replied.
    if (!connection.isReady) return
    this.#health.noteAlive()
    if (report !== undefined) this.note(master.name, report)
  }

  /** A master does not reply. */
  unreached(name: string, reason: string): void {
    this.note(name, { refusal: reason, refused: [], clock: undefined })
  }

  /** Notes what a probe found. */
  note(name: string, report: MasterReport): void {
    const present = this.#link.masterNames()
    // It was taken away meanwhile.
    if (!present.has(name)) return
    for (const known of this.#reports.keys()) if (!present.has(known)) this.#reports.delete(known)
    for (const known of this.#probes.keys()) if (!present.has(known)) this.#probes.delete(known)
    for (const known of this.#failedAt.keys()) if (!present.has(known)) this.#failedAt.delete(known)
    if (!this.#failedAt.has(name) || this.#faultOf(report) !== undefined) this.#failedAt.set(name, performance.now())
    this.#reports.set(name, report)
    if (report.clock !== undefined) this.clock.note(name, report.clock, present)
    if (this.#share > 0) {
      this.#hasServed = true
      this.#refusedSince = undefined
    } else this.#refusedSince ??= this.#hasServed ? performance.now() : NEVER
    this.#logFaults()
    if (report.refusal !== undefined) this.noteErrorCode(report.refusal)
    else if (this.#owesRights) this.warnOfRights()
  }

  /** A command has failed, which need not mean that the link is lost: in a Cluster other masters may serve. */
  noteFailure(key: string | undefined): void {
    const name = this.#nameOf(key)
    if (name !== undefined) this.#failedAt.set(name, performance.now())
  }

  /** Notes the code of an error that a master replied with. Returns the reason if it refused a write. */
  noteErrorCode(code: string, key?: string): WriteRefusal | undefined {
    if (INTERRUPTIONS.has(code)) this.noteFailure(key)
    const refusal = writeRefusalOf(code)
    if (refusal !== undefined && this.#refusalLogs.allows(1)) {
      this.#log.warn({ reason: code, advice: ADVICE[code] }, 'the session store refuses writes')
    }
    this.#health.noteErrorCode(code)
    return refusal
  }

  /**
   * Warns once of commands without which limits and the upstream budget are not shared, as soon as the masters tell. To be called
   * once they were asked.
   */
  warnOfRights(): void {
    const reports = [...this.#reports.values()]
    const refused = new Set(reports.flatMap((report) => report.refused))
    const commands = NEEDS.sharing.names.filter((name) => refused.has(name))
    if (commands.length > 0)
      this.#log.warn({ commands, advice: NEEDS.sharing.advice }, 'the session store forbids commands')
    // A master that is full, or refuses everything, does not tell its rights.
    this.#owesRights = commands.length === 0 && reports.some(({ refusal }) => refusal !== undefined)
  }

  /**
   * Asks the masters for the time if this process stood still: between the probes {@link clock} runs by the monotonic clock, which
   * may have stood still, too. To be called before each command, so that the answer to that one comes later.
   */
  keepTime(): void {
    const { count } = standstill
    if (count === this.#standstills) return
    this.#standstills = count
    this.#link.probe()
  }

  /** See `StoreHealth.unavailableSince`. */
  get unavailableSince(): number | undefined {
    const { downSince } = this.#health
    if (downSince === undefined || this.#refusedSince === undefined) return downSince ?? this.#refusedSince
    return Math.min(downSince, this.#refusedSince)
  }

  /** See `StoreHealth.condition`. */
  get condition() {
    const { downSince, downReason } = this.#health
    const { clock } = this
    if (downSince === undefined) {
      return { share: this.#share, why: this.#refusedSince === undefined ? [] : this.#faults, clock }
    }
    return { share: 0, why: downReason === undefined ? [] : [explained(downReason)], clock }
  }

  /** See `StoreHealth.availableForMs`. */
  availableForMs(key: string): number {
    if (this.#refusedSince !== undefined) return 0
    // A master that was not heard of yet may have taken the place of one that failed.
    const failedAt = this.#failedAt.get(this.#nameOf(key) ?? '') ?? Infinity
    return Math.max(0, Math.min(this.#health.healthyForMs, performance.now() - failedAt))
  }

  /** Faults that an operator should put right, whether the store is available or not. */
  warnings(): string[] {
    const full = [...this.#reports.values()].some(({ refusal }) => refusal === 'OOM')
    const what = this.#share > 0 ? 'a master of the session store does not serve' : 'the session store does not serve'
    return [
      ...this.#faults.map((fault) => `${what}: ${fault}`),
      ...this.clock.warnings(),
      ...(full ? [`the session store refuses writes (OOM): ${ADVICE['OOM']}`] : []),
    ]
  }

  /** How far the clock of the master that holds a key is ahead of the store's (ms). */
  skewMs(key: string): number {
    return this.clock.skewMs(() => this.#link.masterOf(key).name)
  }

  /** The name of the master that has a key, or of the only one; undefined where that is not known. */
  #nameOf(key: string | undefined): string | undefined {
    const [name, ...others] = this.#link.masterNames()
    if (others.length === 0) return name
    try {
      return key === undefined ? undefined : this.#link.masterOf(key).name
    } catch {
      return undefined
    }
  }

  /** The part of the masters that serves: 0 to 1. */
  get #share(): number {
    const reports = [...this.#reports.values()]
    if (reports.length === 0) return 1
    return reports.filter((report) => this.#faultOf(report) === undefined).length / reports.length
  }

  /** Why masters do not serve, for an operator, one sentence for each cause. */
  get #faults(): string[] {
    const byFault = new Map<string, string[]>()
    for (const [name, report] of this.#reports) {
      const fault = this.#faultOf(report)
      if (fault === undefined) continue
      const text = explained(fault.code, fault.commands.length === 0 ? undefined : fault.commands.join(', '))
      byFault.set(text, [...(byFault.get(text) ?? []), name])
    }
    const some = this.#share > 0
    return [...byFault].map(([text, names]) => (some ? `${names.join(', ')}: ${text}` : text))
  }

  #faultOf({ refusal, refused }: MasterReport): Fault | undefined {
    if (refusal !== undefined && refusal !== 'OOM') return { code: refusal, commands: refused }
    const commands = [...this.#needs].filter((name) => refused.includes(name))
    return commands.length === 0 ? undefined : { code: 'NOPERM', commands }
  }

  #logFaults(): void {
    const faults = this.#faults.join(' ')
    if (faults === this.#logged) return
    this.#logged = faults
    if (faults === '') this.#log.info({}, 'every master of the session store serves')
    else if (this.#share > 0) this.#log.warn({ faults }, 'a master of the session store does not serve')
    else this.#log.error({ faults }, 'the session store does not serve')
  }
}
