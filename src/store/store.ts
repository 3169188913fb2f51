import type { SessionIndex } from './session-index.ts'
import type { StoreFacts, StoreObserver } from '../telemetry/store-observer.ts'
import type { SharedLimits } from './shared-limits.ts'
import type { Ledger, LedgerTerms } from './ledger/ledger.ts'
import type { MarkedCommands } from './marked-reading.ts'
import type { SharedDocument } from './shared-document.ts'
import { Unsent } from './links/unsent.ts'

/** A value, ASCII or bytes that are a character each, and the time at which the store forgets it (epoch ms). */
export interface StoredValue {
  readonly value: string
  readonly expiresAt: number
}

/** A record of why a key is gone. All keys live in the same slot of a Cluster. */
interface Tombstone extends StoredValue {
  readonly key: string
  /** Where the value of the tombstone, a space and the value of the key are left for a minute. */
  readonly leftKey: string
}

/**
 * The commands on values by key, each atomic for a key. Only {@link DataCommands.create}, {@link DataCommands.lock} and
 * {@link DataCommands.count} can bring a removed key back. Every method rejects with {@link StoreUnavailable} while the store is
 * unavailable.
 */
export interface DataCommands extends MarkedCommands {
  /** Writes a key. Returns false, and writes nothing, if the key exists. */
  create(key: string, value: string, expiresAt: number): Promise<boolean>
  /**
   * Writes a lock, which {@link removeIf} releases. Returns false if another owner has it: its owner, who may not have heard
   * that, is given it again. Succeeds even when the store is full.
   * @param ttlMs by the clock of the store, so that a wrong clock here cannot let two have it
   */
  lock(key: string, owner: string, ttlMs: number): Promise<boolean>
  read(key: string): Promise<StoredValue | undefined>
  /** Like {@link read}, but {@link StoreData.onChange} need not report the key. For keys that a stranger may name. */
  readUntracked(key: string): Promise<StoredValue | undefined>
  /** Untracked reads: values in the order of the keys, undefined for a key that does not exist. */
  readMany(keys: readonly string[]): Promise<(string | undefined)[]>
  /**
   * Compare-and-set: returns false unless the key holds `expected`, or `value` already, from a try whose reply was lost. Succeeds
   * even when the store is full.
   * @param expiresAt the expiry stays as it is without it
   */
  replace(key: string, expected: string, value: string, expiresAt?: number): Promise<boolean>
  /**
   * Moves the expiry later, never earlier, and reads the key, in one step. A missing key stays missing. While the store
   * accepts no writes, this only reads.
   */
  extend(key: string, expiresAt: number): Promise<StoredValue | undefined>
  /** Returns whether this call removed the key. */
  remove(key: string): Promise<boolean>
  /** Removes the key if it holds `expected`. */
  removeIf(key: string, expected: string): Promise<boolean>
  /**
   * Replaces a key by a tombstone in one step, and returns what is left of it. If the key does not exist, does nothing, and
   * returns what an earlier end has left or somebody has put in its place. Succeeds even when the store is full.
   */
  bury(key: string, tombstone: Tombstone): Promise<string | undefined>
  /**
   * Adds to a counter and returns the count. The first call creates the counter and sets its expiry.
   * @param ttlMs by the clock of the store, so that it is equally long for every instance
   * @param evenWhenFull for counters that no stranger can create; false by default
   */
  count(key: string, by: number, ttlMs: number, evenWhenFull?: boolean): Promise<number>
}

/** Values by key, such as sessions and login transactions, and news of their changes. */
export interface StoreData extends DataCommands {
  /**
   * Waits briefly for every write to the key so far to reach a replica, and returns whether it did. Undefined where
   * there are no replicas, and should be none. Never rejects.
   */
  isReplicated(key: string): Promise<boolean | undefined>
  /**
   * How long a caller may rely on a value it has read (ms), unless {@link onChange} reports a change. Infinity if the
   * store reports every change; short if it reports only those made here.
   */
  readonly staleMs: number
  /**
   * If {@link staleMs} is Infinity, reports every change to a key that was read here, made anywhere, expiry included;
   * otherwise only the changes made here. An {@link extend} made here may go unreported, since its caller knows the result.
   * `undefined`: any key may have changed, because the connection was unhealthy. Listeners must not throw.
   */
  onChange(listener: (key: string | undefined) => void): void
  /**
   * From now on {@link onChange} also reports the keys that are buried elsewhere, where {@link staleMs} is short. It costs a
   * connection there, and nothing where every change is reported anyway.
   */
  watchBurials(): void
  /** Whether {@link onChange} reports the burials of all instances at present. */
  readonly reportsBurials: boolean
}

/** The state that instances share beside single values. A part is loaded only when it is opened. */
interface StoreParts {
  /** Limits that hold over all instances. */
  readonly limits: SharedLimits
  /** Opens the index of sessions by subject. */
  openIndex(): Promise<SessionIndex>
  /** Opens the ledger of an upstream budget, which all users of this store with the same name share. */
  openLedger(name: string, terms: LedgerTerms): Promise<Ledger>
  /**
   * Opens what all users of this store with the same name know of upstream's refusals. Undefined for a store of one process.
   * @param onChange another process has changed the document, or may have
   */
  openRefusals(name: string, onChange: () => void): Promise<SharedDocument | undefined>
  /**
   * Opens writes that count only once this many replicas have confirmed them. They reject when too few do, and at once for a
   * second after that; the write may have happened all the same.
   */
  openConfirmed(replicas: number): Promise<ConfirmableWrites>
}

/** What an operator may want to know of a store. */
export interface StoreCondition {
  /** Why it is unavailable, and what to do; empty while it is available. */
  readonly why: readonly string[]
  /** The part of its masters on which the reads and writes that the server needs succeed: 0 to 1. */
  readonly share: number
  readonly clock: {
    /** How far the clock of this machine is ahead of the store's (ms); undefined while that is unknown. */
    readonly hereAheadMs: number | undefined
    /** How far those of the store's masters are apart (ms). */
    readonly mastersDifferMs: number
  }
}

/** Whether the store can be relied on at present, as this process sees it. */
export interface StoreHealth {
  /**
   * Since when the store has been unavailable (monotonic ms): -Infinity if it has never been available, undefined while it is. It is available
   * while the reads and writes that the server needs succeed on one of its masters at least.
   */
  unavailableSince(): number | undefined
  condition(): StoreCondition
  /** For how long the master that has a key has been available without a failure that this process has seen (ms). */
  availableForMs(key: string): number
  /** Faults that an operator should put right, and how: refused writes, too few or too many replicas, no append-only file. */
  warnings(): string[]
  /**
   * From now on {@link warnings} also tells what could make a failover or a restart forget records of Idempotency-Keys, and a
   * master without replicas has lost them, if there should be some.
   */
  watchReplication(replicas: number): void
}

/** What the metrics say of the store. */
interface StoreMeasures {
  /** Reports every request from now on to this observer alone. A store without round trips reports none. */
  observe(observer: StoreObserver): void
  /** Facts about the servers, a few seconds old at most. Undefined while the servers do not reply. Never rejects. */
  facts(): Promise<StoreFacts | undefined>
}

/** A store with all that it offers, for the code that passes it on. */
export interface Store extends StoreData, StoreParts, StoreHealth, StoreMeasures {
  close(): Promise<void>
}

/** The writes that replicas can confirm. */
export type ConfirmableWrites = Pick<DataCommands, 'create' | 'replace'>

/** The store did not reply, or not in time. A write may or may not have happened, unless it {@link wasSent | was not sent}. */
export class StoreUnavailable extends Error {
  constructor(cause: unknown) {
    super('the session store is unavailable', { cause })
    this.name = 'StoreUnavailable'
  }
}

/** Whether a command that has failed may have been executed all the same, so that a write may have to be taken back. */
export function wasSent(error: unknown): boolean {
  return !(error instanceof StoreUnavailable && error.cause instanceof Unsent)
}

/** Whether only one master of a Cluster has failed: the store itself is available. */
export function isOfOneMaster(error: unknown, store: Pick<StoreHealth, 'unavailableSince'>): boolean {
  return error instanceof StoreUnavailable && store.unavailableSince() === undefined
}

/** What the store has answered; undefined while it is unavailable. */
export async function unlessAway<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StoreUnavailable) return undefined
    throw error
  }
}
