import type { FastifyBaseLogger } from 'fastify'
import {
  isInForce,
  NOTICE,
  ORDERS,
  ordersOf,
  subjectOf,
  versionOf,
  type Control,
  type Notice,
  type OrdersPause,
} from '../controls/control-document.ts'
import type { Controls } from '../controls/controls.ts'
import type { InstanceReport } from '../controls/instance-reports.ts'
import type { Requester } from '../http/requester.ts'
import type { Sessions } from '../sessions/index.ts'
import { unlessAway } from '../store/store.ts'
import { audit } from '../telemetry/audit/audit.ts'
import { sharedNow } from '../time/shared-now.ts'

/** A control that an operator sets or lifts. */
export type ControlChange =
  /** `value` is null to lift the pause. Without a subject it concerns all users, and may replace controls that cannot be read. */
  | {
      readonly control: 'orders'
      readonly subject?: string
      readonly value: OrdersPause | null
      readonly replace?: true
    }
  | { readonly control: 'notice'; readonly value: Notice | null }

/** A command of an operator about the controls. */
export type ControlsCommand =
  | { readonly is: 'show'; readonly requester: Requester }
  | {
      readonly is: 'change'
      readonly change: ControlChange
      readonly requester: Requester
      /** By {@link sharedNow}: workers that cannot reach the store may have had it before. */
      readonly askedAt: number
      /** Another worker has counted it and written the audit line. */
      readonly isNoted?: true
    }

/** The outcome of a {@link ControlsCommand}. */
export type ControlsOutcome =
  | {
      readonly is: 'shown'
      readonly instance: string
      readonly version: number
      /** Those in force. */
      readonly controls: readonly (readonly [name: string, control: Control])[]
      /** Undefined while the store is away. */
      readonly reports: readonly InstanceReport[] | undefined
    }
  /** Unless it is shared, only this instance knows of it until the store is back. */
  | { readonly is: 'changed'; readonly version: number; readonly isShared: boolean }
  /** Nothing was changed: the time at which it was to end is over, or too far away. */
  | { readonly is: 'wrongUntil' }
  /** Nothing was lifted: while this waited for the store, it was set anew. */
  | { readonly is: 'overtaken' }
  /** Nothing was changed: as many subjects are paused as may be. */
  | { readonly is: 'tooMany' }
  /** Sessions have no subject here. */
  | { readonly is: 'noSubjects' }

/** Every instance holds all of them in memory. */
export const MAX_SUBJECTS = 1000
/** A lift that waited for less was not overtaken: which of two commands came first is not known so exactly. */
const OVERTAKEN_MS = 500
/** The end of the year 9999. A later `until` is in milliseconds. */
const LATEST_MS = Date.UTC(10_000, 0) - 1

/** Makes the function that shows and changes the controls for operators. It counts each change and writes an audit line. */
export function controlsAdmin(
  controls: Controls,
  deps: { readonly sessions: Sessions; readonly hasSubjects: boolean; readonly log: FastifyBaseLogger },
): (command: ControlsCommand) => Promise<ControlsOutcome> {
  return async (command) => (command.is === 'show' ? show(controls) : change(controls, command, deps))
}

async function show({ shared }: Controls): Promise<ControlsOutcome> {
  const reports = await unlessAway(shared.reports())
  const { document, now, instance } = shared
  const inForce = [...document].filter(([, control]) => isInForce(control, now))
  return { is: 'shown', instance, version: versionOf(document), controls: inForce, reports }
}

async function change(
  { shared, metrics }: Controls,
  { change, requester, askedAt, isNoted }: Extract<ControlsCommand, { is: 'change' }>,
  { sessions, hasSubjects, log }: Parameters<typeof controlsAdmin>[1],
): Promise<ControlsOutcome> {
  const { control, value } = change
  const subject = control === 'orders' ? change.subject : undefined
  if (subject !== undefined && !hasSubjects) return { is: 'noSubjects' }
  const name = control === 'notice' ? NOTICE : subject === undefined ? ORDERS : ordersOf(subject)
  let refusal: 'wrongUntil' | 'tooMany' | 'overtaken' | undefined
  const mayReplace = control === 'orders' && change.replace === true
  const outcome = await shared.change(
    (version, now, wanted) => {
      const { until = Infinity } = value ?? {}
      if (until <= now || (until !== Infinity && until > LATEST_MS)) refusal = 'wrongUntil'
      else if (value !== null && subject !== undefined && isFull(shared, name)) refusal = 'tooMany'
      else if (value === null && isOvertaken(shared.document.get(name), wanted, now)) refusal = 'overtaken'
      return refusal === undefined
        ? [name, { version, at: Math.floor(value === null ? wanted : now), value }]
        : undefined
    },
    sharedNow() - askedAt,
    mayReplace,
  )
  if (outcome.is === 'refused') return { is: refusal ?? 'wrongUntil' }
  // The line of the other worker says that it knew of no other.
  if (isNoted && !outcome.isShared) return outcome
  const action = value === null ? 'lifted' : 'set'
  if (!isNoted) metrics.changes.inc({ control, action })
  audit(log, 'controls_changed', {
    control,
    action,
    controlsVersion: outcome.version,
    ...(!outcome.isShared && { outcome: 'here_only' }),
    ...(subject !== undefined && { subject: sessions.subjectTag(subject) }),
    ...(value?.message !== undefined && { text: value.message }),
    ...(value?.until !== undefined && { until: Math.floor(value.until / 1000) }),
    ...(value !== null && 'closing' in value && { closing: value.closing ? 'allowed' : 'paused' }),
    ...requester,
  })
  return outcome
}

/** Whether a control was set after its lift was asked for. Whoever did that believes that it is in force. */
function isOvertaken(control: Control | undefined, askedAt: number, now: number): boolean {
  return now - askedAt > OVERTAKEN_MS && control !== undefined && isInForce(control, now) && control.at > askedAt
}

function isFull({ document, now }: Controls['shared'], name: string): boolean {
  const subjects = [...document].filter(
    ([other, control]) => subjectOf(other) !== undefined && other !== name && isInForce(control, now),
  )
  return subjects.length >= MAX_SUBJECTS
}
