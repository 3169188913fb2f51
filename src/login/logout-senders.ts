import { createHash } from 'node:crypto'
import { BlockList, isIPv6 } from 'node:net'
import { MinuteCounts } from '../limits/minute-counts.ts'
import { network } from '../limits/networks.ts'
import { Permits } from '../limits/permits.ts'
import type { SignatureCheck } from '../oauth/provider-keys.ts'
import { LOGOUT_SENDERS_KEY } from '../store/keys.ts'
import type { SessionIndex } from '../store/session-index.ts'
import { polls } from '../time/polls.ts'
import { storeNow } from '../time/store-time.ts'

/** False tokens of an address in a second. An address that the provider uses may send more. */
const MAX_FALSE = 10
const MAX_FALSE_KNOWN = 200
/** Signatures of tokens of unknown addresses that this process checks in vain in a second. */
const MAX_CHECKS = 5000
/** Tokens of an address that are checked, or wait for the check of another one. */
const MAX_WAITING = 1000
const SECOND_MS = 1000
const MAX_ADDRESSES = 100_000
/** How long an address is known after a valid token, and how often a process says so to the store. */
const KNOWN_MS = 7 * 86_400_000
const NOTE_MS = 3_600_000
const READ_MS = 60_000
const CHECKS = 'checks'

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
  /** The check of the latest token of each address. */
  readonly #latest = new Map<string, Promise<SignatureCheck | undefined>>()
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
   * Checks the signature of a token, after those of the same address that came before it: whether these were false decides
   * whether it is looked at. A token that names a key which the provider lacks counts as false, since strangers make these up.
   * @param checkSignature never rejects
   * @returns undefined when the address, or strangers together, have had too many checked in this second
   */
  async check(address: string, checkSignature: () => Promise<SignatureCheck>): Promise<SignatureCheck | undefined> {
    const source = network(address)
    if (!this.#waiting.acquire(source, MAX_WAITING)) return undefined
    const before = this.#latest.get(source) ?? Promise.resolve()
    const next = (): Promise<SignatureCheck | undefined> => this.#check(address, checkSignature)
    // One that fails unexpectedly must not fail all that come after it.
    const check = before.then(next, next)
    this.#latest.set(source, check)
    return check.finally(() => {
      this.#waiting.release(source)
      if (this.#latest.get(source) === check) this.#latest.delete(source)
    })
  }

  /** Notes that an address has sent a valid token. @throws StoreUnavailable */
  async noteValid(address: string): Promise<void> {
    const id = idOf(address)
    const expiresAt = storeNow() + KNOWN_MS
    if ((this.#known.get(id) ?? 0) > expiresAt - NOTE_MS) return
    this.#known.set(id, expiresAt)
    await this.#index.add(LOGOUT_SENDERS_KEY, { id, value: 'valid', expiresAt }, 0)
  }

  close(): void {
    this.#stop()
  }

  /** Never rejects. */
  async #check(address: string, checkSignature: () => Promise<SignatureCheck>): Promise<SignatureCheck | undefined> {
    if (this.isOver(address)) return undefined
    if (!this.#checks.allows(CHECKS, this.#isKnown(address) ? Infinity : MAX_CHECKS)) return undefined
    const signature = await checkSignature()
    if (signature.is === 'valid') this.#checks.allows(CHECKS, Infinity, -1)
    else if (signature.is === 'invalid' || signature.isKeyUnknown) this.countFalse(address)
    return signature
  }

  #limitOf(address: string): number {
    return this.#isKnown(address) ? MAX_FALSE_KNOWN : MAX_FALSE
  }

  #isKnown(address: string): boolean {
    // Any other text than an address, such as a proxy may send, is not listed.
    if (this.#listed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return true
    return (this.#known.get(idOf(address)) ?? 0) > storeNow()
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
