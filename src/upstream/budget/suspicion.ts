import { byClass, type BudgetClass } from '../../config/upstream-budget.ts'
import { backoffMs } from '../../time/backoff.ts'

/** The knowledge that all instances share of upstream's 429s to one class of calls. Times are those of the store's clock (epoch ms). */
interface Suspicion {
  /** By user: when upstream refused them last, and until when they are held back. */
  readonly users: Readonly<Record<string, HeldBack>>
  /** By subject, or else by the address of the client: when upstream refused them last. */
  readonly sources: Readonly<Record<string, number>>
  /** By source: until when it does not count, because a suspicion that it raised was wrong. */
  readonly discounted: Readonly<Record<string, number>>
  /** Since when upstream may be refusing the whole class; 0 while it is not suspected. */
  readonly raisedAt: number
  readonly suspectedUntil: number
  /** Until when the whole class is held back. */
  readonly heldUntil: number
  /** The call whose answer decides, if one is on its way. */
  readonly probe: { readonly id: string; readonly until: number } | null
  /** The earliest time for another probe. */
  readonly nextProbeAt: number
  /** How many probes in a row were refused. */
  readonly refusedProbes: number
}

type HeldBack = readonly [at: number, until: number]

/** The suspicion of each class. */
export type Suspicions = Readonly<Record<BudgetClass, Suspicion>>

/** The user of a call. */
export interface Caller {
  /** The subject, else the session. */
  readonly user: string
  /** The name by which the caller counts among the users whom upstream refuses: the subject, else the address. */
  readonly source: string
}

/** What happens to a call of a class. A probe is the call whose answer decides, and has a name. */
export type CallEvent =
  /** Upstream has refused the call, and asks the caller to wait. */
  | { readonly is: 'refused'; readonly caller: Caller; readonly waitMs: number; readonly probe: string | undefined }
  /** The call is to be the probe, if it may be. */
  | { readonly is: 'probing'; readonly caller: Caller; readonly probe: string }
  /** Upstream has answered a probe with anything but 429: the class is not what it limits. */
  | { readonly is: 'answered'; readonly probe: string }
  /** A probe will not be answered, so that another may go out. */
  | { readonly is: 'unanswered'; readonly probe: string }

/** Nothing may be held back for longer at a time. */
export const MAX_HOLD_MS = 60_000
/** This many sources that are refused within this time raise a suspicion. */
const SOURCES = 3
const WITHIN_MS = 10_000
/** A suspicion ends after this time if no probe was answered meanwhile. */
const SUSPECTED_MS = 60_000
/** Users who were refused within this time send no probes, and sources that raised a wrong suspicion raise none. */
const MEMORY_MS = 300_000
/** Another probe may go out after this time, since the instance that sent the last one may be dead. */
const PROBE_MS = 15_000
/** The time between a refused probe and the next one, which doubles each time. */
const FIRST_PAUSE_MS = 1000
/** Users, and sources, that are remembered; the ones refused longest ago are forgotten first. */
const MAX_KEPT = 500

/** The state before upstream has refused a call. */
const UNSUSPECTED: Suspicion = {
  users: {},
  sources: {},
  discounted: {},
  raisedAt: 0,
  suspectedUntil: 0,
  heldUntil: 0,
  probe: null,
  nextProbeAt: 0,
  refusedProbes: 0,
}

/** How all instances share the suspicion of each class. While the store is away, each of them knows only its own 429s. */
export const SUSPICIONS = {
  nothing: byClass(() => UNSUSPECTED),
  // Another version may have written what this one cannot read.
  parse: (text: string, now: number): Suspicions => {
    const suspicions = JSON.parse(text) as Suspicions
    return byClass((each) => pruned(suspicions[each], now))
  },
  format: (suspicions: Suspicions): string => JSON.stringify(suspicions),
  // Longer than anything in it has an effect.
  ttlMs: 600_000,
  isAtOnce: true,
  // No time left is taken for longer than it is.
  isAhead: true,
} as const

/** Whether upstream may be refusing the whole class. */
export function isSuspected({ suspectedUntil }: Suspicion, now: number): boolean {
  return suspectedUntil > now
}

/** Whether a call of this caller would be a probe, if it were sent now. */
export function mayProbe(suspicion: Suspicion, { user, source }: Caller, now: number): boolean {
  const { probe, nextProbeAt, users, sources } = suspicion
  if (!isSuspected(suspicion, now) || nextProbeAt > now || (probe !== null && probe.until > now)) return false
  return Math.max(users[user]?.[0] ?? 0, sources[source] ?? 0) <= now - MEMORY_MS
}

/** What is known after an event. */
export function suspicionAfter(before: Suspicion, event: CallEvent, now: number): Suspicion {
  const suspicion = pruned(before, now)
  const isProbe = suspicion.probe !== null && suspicion.probe.id === event.probe
  switch (event.is) {
    case 'refused': {
      const after = refused(suspicion, event.caller, event.waitMs, now)
      return isProbe ? held(after, event.waitMs, now) : after
    }
    case 'probing': {
      const probe = { id: event.probe, until: now + PROBE_MS }
      return mayProbe(suspicion, event.caller, now) ? { ...suspicion, probe } : suspicion
    }
    case 'answered':
      return isProbe ? cleared(suspicion, now) : suspicion
    case 'unanswered':
      return isProbe ? { ...suspicion, probe: null } : suspicion
  }
}

function refused(suspicion: Suspicion, { user, source }: Caller, waitMs: number, now: number): Suspicion {
  const until = Math.max(now + waitMs, suspicion.users[user]?.[1] ?? 0)
  const users = newest({ ...suspicion.users, [user]: [now, until] as const }, ([at]) => at)
  const sources = newest({ ...suspicion.sources, [source]: now }, (at) => at)
  return raised({ ...suspicion, users, sources }, now)
}

/** Ends a suspicion, which was wrong: for some time those who raised it raise none. */
function cleared({ users, sources, raisedAt, ...suspicion }: Suspicion, now: number): Suspicion {
  const discounted = { ...suspicion.discounted }
  for (const [source, at] of Object.entries(sources)) {
    if (at >= raisedAt - WITHIN_MS) discounted[source] = now + MEMORY_MS
  }
  return { ...UNSUSPECTED, users, sources, discounted: newest(discounted, (until) => until) }
}

/** Raises a suspicion if enough sources were refused a short time ago. */
function raised(suspicion: Suspicion, now: number): Suspicion {
  const { sources, discounted, raisedAt } = suspicion
  const recent = Object.entries(sources).filter(
    ([source, at]) => at > now - WITHIN_MS && !((discounted[source] ?? 0) > now),
  )
  if (recent.length < SOURCES) return suspicion
  const suspectedUntil = Math.max(suspicion.suspectedUntil, now + SUSPECTED_MS)
  return { ...suspicion, raisedAt: isSuspected(suspicion, now) ? raisedAt : now, suspectedUntil }
}

/** Holds the class back, because upstream has refused a probe. */
function held(suspicion: Suspicion, waitMs: number, now: number): Suspicion {
  const pauseMs = backoffMs(suspicion.refusedProbes, { firstMs: FIRST_PAUSE_MS, longestMs: MAX_HOLD_MS })
  const heldUntil = Math.max(suspicion.heldUntil, now + Math.max(waitMs, pauseMs))
  return {
    ...suspicion,
    heldUntil,
    // When the time is over and no probe was sent, the first call is one, and not the tenth that is refused.
    suspectedUntil: Math.max(suspicion.suspectedUntil, heldUntil + SUSPECTED_MS),
    probe: null,
    nextProbeAt: now + pauseMs,
    refusedProbes: suspicion.refusedProbes + 1,
  }
}

/** Forgets what has no effect any more, and keeps no time that a store whose clock was ahead has written. */
function pruned(suspicion: Suspicion, now: number): Suspicion {
  const atMost = (time: number, ms: number): number => Math.min(time, now + ms)
  const users: Record<string, HeldBack> = {}
  for (const [user, [at, until]] of Object.entries(suspicion.users)) {
    if (at > now - MEMORY_MS) users[user] = [atMost(at, 0), atMost(until, MAX_HOLD_MS)]
  }
  const kept = { users, sources: since(suspicion.sources, now - MEMORY_MS, now) }
  const discounted = since(suspicion.discounted, now, now + MEMORY_MS)
  if (!isSuspected(suspicion, now)) return { ...UNSUSPECTED, ...kept, discounted }
  const { raisedAt, suspectedUntil, heldUntil, probe, nextProbeAt, refusedProbes } = suspicion
  return {
    ...kept,
    discounted,
    raisedAt: atMost(raisedAt, 0),
    suspectedUntil: atMost(suspectedUntil, MAX_HOLD_MS + SUSPECTED_MS),
    heldUntil: atMost(heldUntil, MAX_HOLD_MS),
    probe: probe && { id: probe.id, until: atMost(probe.until, PROBE_MS) },
    nextProbeAt: atMost(nextProbeAt, MAX_HOLD_MS),
    refusedProbes,
  }
}

function since(times: Readonly<Record<string, number>>, from: number, latest: number): Record<string, number> {
  const kept: Record<string, number> = {}
  for (const [name, at] of Object.entries(times)) if (at > from) kept[name] = Math.min(at, latest)
  return kept
}

function newest<Value>(entries: Record<string, Value>, timeOf: (value: Value) => number): Record<string, Value> {
  const all = Object.entries(entries)
  if (all.length <= MAX_KEPT) return entries
  return Object.fromEntries(all.sort(([, one], [, other]) => timeOf(other) - timeOf(one)).slice(0, MAX_KEPT))
}
