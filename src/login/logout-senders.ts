import { createHash } from 'node:crypto'
import { BlockList, isIPv6 } from 'node:net'
import { MinuteCounts } from '../limits/minute-counts.ts'
import { network } from '../limits/networks.ts'
import { Permits } from '../limits/permits.ts'
import type { SignatureCheck } from '../oauth/provider-keys.ts'
import { LOGOUT_SENDERS_KEY } from '../store/keys.ts'
import type { SessionIndex } from '../store/session-index.ts'
import { polls } from '../time/polls.ts'

/** False tokens of an address in a second. An address that the provider uses may send more. */
const MAX_FALSE = 10
const MAX_FALSE_KNOWN = 200
/** Signatures of tokens of unknown addresses that this process checks in vain in a second. */
const MAX_CHECKS = 5000
/** Tokens of an address that are checked, or wait for a check of another one. */
const MAX_WAITING = 1000
const SECOND_MS = 1000
const MAX_ADDRESSES = 100_000
/** How long an address is known after a valid token, and how often a process says so to the store. */
const KNOWN_MS = 7 * 86_400_000
const NOTE_MS = 3_600_000
const READ_MS = 60_000
const CHECKS = 'checks'

/** A check that is under way, or none: the token is refused. */
interface Begun {
  readonly check?: Promise<SignatureCheck>
}

/**
 * Bounds the work that false logout tokens cause. The addresses that the provider uses are learned from its valid tokens and
 * kept in the store, which is read once a minute and never for a token.
 */
export class LogoutSenders {
  readonly #index: SessionIndex
  readonly #listed: BlockList
  readonly #false = new MinuteCounts(MAX_ADDRESSES, SECOND_MS)
  readonly #checks = new MinuteCounts(1, SECOND_MS)
  readonly #waiting = new Permits()
  /** The latest token of each address that waits for its check to begin: they begin in order. */
  readonly #lines = new Map<string, Promise<Begun>>()
  /** The checks that have begun, by the address. */
  readonly #running = new Map<string, Set<Promise<SignatureCheck>>>()
  /** Until when an address is known, by its id (epoch ms). */
  #known = new Map<string, number>()
  readonly #stop: () => void

  /** @param from addresses and CIDRs that are known from the start */
  constructor(index: SessionIndex, from: readonly string[]) {
    this.#index = index
    this.#listed = blockList(from)
    this.#stop = polls(() => this.#read(), READ_MS, 0)
  }

  /** Whether an address has sent so many false tokens in this second that no other is looked at. */
  isOver(address: string): boolean {
    const source = network(address)
    return this.#false.isFull(source, MAX_FALSE) && this.#false.isFull(source, this.#limitOf(address))
  }

  countFalse(address: string): void {
    this.#false.allows(network(address), Infinity)
  }

  /**
   * Checks the signature of a token. The tokens of an address are checked in order, and never more at the same time than may
   * still be false in this second: those that wait may be valid. One that waits in vain for a key of the provider counts as
   * false.
   * @param checkSignature never rejects
   * @returns undefined when the address, or strangers together, have had too many checked in this second
   */
  async check(address: string, checkSignature: () => Promise<SignatureCheck>): Promise<SignatureCheck | undefined> {
    const source = network(address)
    if (!this.#waiting.acquire(source, MAX_WAITING)) return undefined
    const begun = (this.#lines.get(source) ?? Promise.resolve()).then(() => this.#begin(address, checkSignature))
    this.#lines.set(source, begun)
    const signature = await (await begun).check
    if (signature?.is === 'valid') this.#checks.allows(CHECKS, Infinity, -1)
    this.#waiting.release(source)
    if (this.#lines.get(source) === begun) this.#lines.delete(source)
    return signature
  }

  /** Notes that an address has sent a valid token. @throws StoreUnavailable */
  async noteValid(address: string): Promise<void> {
    const id = idOf(address)
    const expiresAt = Date.now() + KNOWN_MS
    if ((this.#known.get(id) ?? 0) > expiresAt - NOTE_MS) return
    this.#known.set(id, expiresAt)
    await this.#index.add(LOGOUT_SENDERS_KEY, { id, value: 'valid', expiresAt }, 0)
  }

  close(): void {
    this.#stop()
  }

  /** Never rejects. */
  async #begin(address: string, checkSignature: () => Promise<SignatureCheck>): Promise<Begun> {
    for (let checks = this.#decisive(address); checks; checks = this.#decisive(address)) await Promise.race(checks)
    if (this.isOver(address)) return {}
    if (!this.#checks.allows(CHECKS, this.#isKnown(address) ? Infinity : MAX_CHECKS)) return {}
    return { check: this.#run(network(address), checkSignature()) }
  }

  /** The running checks of an address, if it has sent too many false tokens should all of these be false. */
  #decisive(address: string): ReadonlySet<Promise<SignatureCheck>> | undefined {
    const source = network(address)
    const running = this.#running.get(source)
    if (running === undefined || this.isOver(address)) return undefined
    const left = this.#limitOf(address) - running.size
    return left <= 0 || this.#false.isFull(source, left) ? running : undefined
  }

  /** A token that is not valid is counted before those that wait for this check go on. */
  async #run(source: string, check: Promise<SignatureCheck>): Promise<SignatureCheck> {
    const running = this.#running.get(source) ?? new Set()
    this.#running.set(source, running)
    const counted = check.then((signature) => {
      if (signature.is !== 'valid') this.#false.allows(source, Infinity)
      running.delete(counted)
      if (running.size === 0) this.#running.delete(source)
      return signature
    })
    running.add(counted)
    return counted
  }

  #limitOf(address: string): number {
    return this.#isKnown(address) ? MAX_FALSE_KNOWN : MAX_FALSE
  }

  #isKnown(address: string): boolean {
    // Any other text than an address, such as a proxy may send, is not listed.
    if (this.#listed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return true
    return (this.#known.get(idOf(address)) ?? 0) > Date.now()
  }

  /** Never rejects. While the store is away, what was known stays known. */
  async #read(): Promise<void> {
    const entries = await this.#index.list(LOGOUT_SENDERS_KEY).catch(() => undefined)
    if (entries !== undefined) this.#known = new Map(entries.map(({ id, expiresAt }) => [id, expiresAt]))
  }
}

function idOf(address: string): string {
  return createHash('sha256').update(network(address)).digest('base64url').slice(0, 16)
}

function blockList(from: readonly string[]): BlockList {
  const list = new BlockList()
  for (const each of from) {
    const [address = '', bits] = each.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
