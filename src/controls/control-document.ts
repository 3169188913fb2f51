/** What an operator has paused. Times are epoch ms by the store's clock. */
export interface OrdersPause {
  /** For the users, as a text. */
  readonly message?: string | undefined
  /** When it ends by itself. */
  readonly until?: number | undefined
  /** Whether users may close what they have bought. */
  readonly closing: boolean
}

/** What an operator tells all users, as a text. */
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

/** How long a control that has ended is kept. An instance that was cut off for longer could set it again. */
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

/** Of each control the higher version, without what has ended long ago. */
export function merged(one: ControlDocument, other: ControlDocument, now: number): ControlDocument {
  const both = new Map(one)
  for (const [name, control] of other) {
    const known = both.get(name)
    if (known === undefined || isOlder(known, control)) both.set(name, control)
  }
  // The latest stays: an instance that starts without it would give out lower versions, which the others do not take.
  const latest = versionOf(both)
  for (const [name, { version, at, value }] of both) {
    const endedAt = value === null ? at : (value.until ?? Infinity)
    if (version < latest && endedAt < now - KEPT_MS) both.delete(name)
  }
  return both
}

/** The text of a document: the same for equal documents. */
export function textOf(document: ControlDocument): string {
  return JSON.stringify([...document].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** @param text of {@link textOf} */
export function parseControls(text: string): ControlDocument {
  return new Map(JSON.parse(text) as [string, Control][])
}

/** Instances that were cut off from each other may have given out the same version. All must choose the same one then. */
function isOlder(one: Control, than: Control): boolean {
  if (one.version !== than.version) return one.version < than.version
  if (one.at !== than.at) return one.at < than.at
  return JSON.stringify(one) < JSON.stringify(than)
}
