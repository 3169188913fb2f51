import type { MasterReport } from './master-probe.ts'
import { standstill } from '../../time/standstill.ts'
import { followStoreClock } from '../../time/store-time.ts'

/** A difference between clocks above this is an operator's business. */
const NOTICEABLE_MS = 5000
/** Clocks of masters that differ by less count as one. */
const SAME_MS = 1000

const NTP = 'Synchronize the clocks (NTP).'

/**
 * The clock of the store: with one master its clock, with several the median of theirs. It is read with each probe, and runs on
 * by the monotonic clock of this process in between, so setting the clock of this machine changes nothing.
 */
export class StoreClock {
  /** By the name of a master, how far its clock is ahead of the monotonic clock of this process (ms). */
  readonly #ahead = new Map<string, number>()
  #median = 0
  /** The standstills of this process at the latest reading. */
  #standstills = standstill.count
  #endFollowing: (() => void) | undefined

  /** Notes what the clock of a master showed. @param masters the present ones */
  note(
    name: string,
    { time, sentAt, receivedAt }: NonNullable<MasterReport['clock']>,
    masters: ReadonlySet<string>,
  ): void {
    for (const known of this.#ahead.keys()) if (!masters.has(known)) this.#ahead.delete(known)
    // The reading can be from any moment between the two, and its milliseconds are cut off. What is known stays if it may be true.
    const [least, most] = [time - receivedAt, time + 1 - sentAt]
    const known = this.#ahead.get(name) ?? (least + most) / 2
    // The monotonic clock may have stood still, and then it did for all masters.
    if (this.#standstills !== standstill.count && least - known > SAME_MS) this.#shift(least - known)
    this.#standstills = standstill.count
    this.#ahead.set(name, Math.min(most, Math.max(least, known)))
    const sorted = [...this.#ahead.values()].toSorted((one, other) => one - other)
    this.#median = sorted[Math.floor(sorted.length / 2)] ?? 0
    this.#endFollowing ??= followStoreClock((monotonic) => Math.floor(monotonic + this.#median))
  }

  /**
   * How far the clock of a master is ahead of this clock (ms).
   * @param name tells the master, where that makes a difference
   */
  skewMs(name: () => string): number {
    if (this.mastersDifferMs < SAME_MS) return 0
    try {
      return Math.round((this.#ahead.get(name()) ?? this.#median) - this.#median)
    } catch {
      // No master has the key at present, so a command fails that concerns it.
      return 0
    }
  }

  /** How far the clock of this machine is ahead of this clock (ms); undefined before the first reading. */
  get hereAheadMs(): number | undefined {
    return this.#ahead.size === 0 ? undefined : Date.now() - performance.now() - this.#median
  }

  /** How far the clocks of the masters are apart (ms). */
  get mastersDifferMs(): number {
    if (this.#ahead.size < 2) return 0
    const all = [...this.#ahead.values()]
    return Math.max(...all) - Math.min(...all)
  }

  /** Warnings for an operator. */
  warnings(): string[] {
    return clockWarnings(this.hereAheadMs ?? 0, this.mastersDifferMs)
  }

  #shift(ms: number): void {
    for (const [name, aheadMs] of this.#ahead) this.#ahead.set(name, aheadMs + ms)
  }

  close(): void {
    this.#endFollowing?.()
  }
}

/** Warnings for an operator of differences between clocks (ms). */
export function clockWarnings(hereAheadMs: number, mastersDifferMs: number): string[] {
  const warnings: string[] = []
  if (Math.abs(hereAheadMs) > NOTICEABLE_MS) {
    const seconds = Math.round(Math.abs(hereAheadMs) / 1000)
    const how = hereAheadMs > 0 ? 'ahead of' : 'behind'
    warnings.push(
      `the clock of this machine is ${seconds} s ${how} that of Redis, by which sessions and logins last; tokens of the provider are judged by it, too. ${NTP}`,
    )
  }
  if (mastersDifferMs > NOTICEABLE_MS) {
    const seconds = Math.round(mastersDifferMs / 1000)
    warnings.push(
      `the clocks of the masters of Redis are up to ${seconds} s apart; what a master holds lasts by its own clock, and a failover may end it early or late. ${NTP}`,
    )
  }
  return warnings
}
