/** A pause of orders by an operator. Times are epoch ms by the store's clock. */
export interface OrdersPause {
  /** For the users, as a text. */
  readonly message?: string | undefined
  /** When it ends by itself. */
  readonly until?: number | undefined
  /** Whether users may close what they have bought. */
  readonly closing: boolean
}

/** A text that an operator shows to all users. */
export interface Notice {
  readonly message: string
  /** When it ends by itself (epoch ms by the store's clock). */
  readonly until?: number | undefined
}

/** One thing that operators set and lift. */
export interface Control {
  /** Grows with every change of any control. Of two versions of a control, the higher one counts. */
  readonly version: number
  /** When it was set or lifted (epoch ms by the store's clock). */
  readonly at: number
  /** Null once it is lifted: that must outlive an instance which still has the version before. */
  readonly value: OrdersPause | Notice | null
}

/** The controls by name: {@link ORDERS}, {@link NOTICE} and {@link ordersOf}. */
export type ControlDocument = ReadonlyMap<string, Control>

/** The pause of all users' orders. */
export const ORDERS = 'orders'
export const NOTICE = 'notice'
const SUBJECTS = 'orders of '

/**
 * Stands for the controls that have ended and are no longer kept: its version is the highest of theirs. A control below it that
 * is missing has been lifted, whoever still has it. To version 0.3 this is one more control that was lifted.
 */
const FLOOR = 'floor'
/** How many controls that have ended are kept, and for how long. */
const MAX_ENDED = 1000
const KEPT_MS = 30 * 86_400_000

/** The name of the pause of one subject's orders. */
export function ordersOf(subject: string): string {
  return SUBJECTS + subject
}

/** The subject whose orders the control of this name pauses, if it is one of those. */
export function subjectOf(name: string): string | undefined {
  return name.startsWith(SUBJECTS) ? name.slice(SUBJECTS.length) : undefined
}

/** The highest version of a control; 0 where there is none. */
export function versionOf(document: ControlDocument): number {
  return Math.max(0, ...[...document.values()].map(({ version }) => version))
}

/** Whether a control is in force. */
export function isInForce({ value }: Control, now: number): boolean {
  return value !== null && (value.until ?? Infinity) > now
}

/** Of each control the higher version, without what has been lifted or has ended long ago. */
export function merged(one: ControlDocument, other: ControlDocument, now: number): ControlDocument {
  const both = new Map([...one].filter(isKnownTo(other)))
  for (const [name, control] of [...other].filter(isKnownTo(one))) {
    const known = both.get(name)
    if (known === undefined || isOlder(known, control)) both.set(name, control)
  }
  return tidied(both, now)
}

/** Tells the controls that a document has, or could not have yet. */
function isKnownTo(document: ControlDocument): (entry: readonly [name: string, control: Control]) => boolean {
  const floor = document.get(FLOOR)?.version ?? 0
  return ([name, { version }]) => version >= floor || document.has(name)
}

/** The same document without the controls that ended long ago or are the oldest of many that have ended. */
export function tidied(document: ControlDocument, now: number): ControlDocument {
  // The latest stays: an instance that starts without it would give out lower versions, which the others do not take.
  const latest = versionOf(document)
  const dropped = [...document]
    .filter(([name, control]) => name !== FLOOR && !isInForce(control, now))
    .toSorted(([a, one], [b, other]) => other.version - one.version || (a < b ? -1 : 1))
    .filter(([, { version, at, value }], index) => {
      return index >= MAX_ENDED || (version < latest && (value?.until ?? at) < now - KEPT_MS)
    })
  if (dropped.length === 0) return document
  const kept = new Map(document)
  for (const [name] of dropped) kept.delete(name)
  const floors = [
    document.get(FLOOR) ?? [],
    dropped.map(([, { version, at }]) => ({ version, at, value: null })),
  ].flat()
  return kept.set(
    FLOOR,
    floors.reduce((floor, each) => (isOlder(floor, each) ? each : floor)),
  )
}

/** The text of a document: the same for equal documents. */
export function textOf(document: ControlDocument): string {
  return JSON.stringify([...document].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** @param text of {@link textOf} @returns undefined for what this version does not understand */
export function parseControls(text: string): ControlDocument | undefined {
  try {
    return new Map(JSON.parse(text) as [string, Control][])
  } catch {
    return undefined
  }
}

/** Instances that were cut off from each other may have given out the same version. All must choose the same one then. */
function isOlder(one: Control, than: Control): boolean {
  if (one.version !== than.version) return one.version < than.version
  if (one.at !== than.at) return one.at < than.at
  return JSON.stringify(one) < JSON.stringify(than)
}

/** Instances that are cut off from each other may give the same version to two controls. */
export function isSame(one: Control, other: Control | undefined): boolean {
  return one.version === other?.version && one.at === other.at
}
