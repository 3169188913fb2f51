import type { SettingFormat } from './setting-formats.ts'

type Production = 'required' | 'https' | 'wss' | 'off'

/** What the value of a setting may be. A setting without a default is optional unless it is required. */
export interface SettingRule {
  readonly kind: 'text' | 'whole'
  readonly description: string
  readonly isRequired?: true
  readonly default?: string | number
  readonly format?: SettingFormat
  readonly choices?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  /** What production demands in addition: that there is a value, an encrypted scheme, or that a flag is off. */
  readonly production?: Production | undefined
}

/** An optional text. `production` names what production demands of it. */
export const text = (description: string, format: SettingFormat, production?: Production) =>
  ({ kind: 'text', description, format, production }) as const
/** A text that every server needs. */
export const required = (description: string, format: SettingFormat, production?: Production) =>
  ({ ...text(description, format, production), isRequired: true }) as const
/** A text with a default. */
export const textOr = (fallback: string, format: SettingFormat, description: string) =>
  ({ kind: 'text', description, format, default: fallback }) as const
/** One of several words. */
export const oneOf = (fallback: string, choices: readonly string[], description: string) =>
  ({ kind: 'text', description, choices, default: fallback }) as const
/** A whole number with a default. */
export const whole = (fallback: number, minimum: number, maximum: number, description: string) =>
  ({ kind: 'whole', description, minimum, maximum, default: fallback }) as const
/** A setting that is true or false. */
export const flag = (fallback: boolean, description: string) => textOr(String(fallback), 'flag', description)

type Always = { readonly isRequired: true } | { readonly default: string | number }
type ValueOf<Rule extends SettingRule> =
  | (Rule['kind'] extends 'whole' ? number : string)
  | (Rule extends Always ? never : undefined)

/** The values of settings with these rules, as text and numbers. Each is valid by itself. */
export type ValuesOf<Rules extends Readonly<Record<string, SettingRule>>> = {
  readonly [Name in keyof Rules]: ValueOf<Rules[Name]>
}

/** A wrong or missing setting. */
export interface SettingProblem {
  readonly setting: string
  /** Completes a sentence that starts with the name of the setting. Never contains the value. */
  readonly message: string
}

/** The problems of a list that are there. */
export function problemsWhere(
  checks: readonly (readonly [setting: string, isWrong: boolean, message: string])[],
): SettingProblem[] {
  return checks.flatMap(([setting, isWrong, message]) => (isWrong ? [{ setting, message }] : []))
}

/** The result of one check by `--check`, for an operator. Contains no secret. */
export interface CheckResult {
  readonly is: 'ok' | 'warning' | 'failed'
  /** The setting that names what was checked. */
  readonly setting: string
  readonly message: string
  /** What the operator can do about it. */
  readonly advice?: string
}
