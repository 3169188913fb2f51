import { Changeable } from './changing.ts'

type Production = 'required' | 'https' | 'wss' | 'off'
type Range = readonly [minimum: number, maximum: number]

/** A format tells which texts a setting may have, and the value that each stands for. */
export interface Format<Value> {
  /** Returns undefined for a text of another format. */
  readonly parse: (text: string) => Value | undefined
  /** Completes “NAME must be …”. */
  readonly must: string
  /** All texts, where there are few. */
  readonly words?: readonly string[]
  /** The bounds of a whole number. */
  readonly range?: Range
}

/** The same texts with another value. A text for which `make` returns undefined is not of the new format. */
export function mapped<From, To>(format: Format<From>, make: (value: From) => To | undefined): Format<To> {
  return {
    ...format,
    parse(text) {
      const value = format.parse(text)
      return value === undefined ? undefined : make(value)
    },
  }
}

/** A value that may change while the server runs. */
export const changing = <Value>(format: Format<Value>): Format<Changeable<Value>> =>
  mapped(format, (value) => new Changeable(value))

/** One of several words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Format<Word> {
  return { parse: (text) => words.find((word) => word === text), must: `one of ${words.join(', ')}`, words }
}

/** A whole number from one to another, both included. */
export function wholeFrom(minimum: number, maximum: number): Format<number> {
  return {
    parse: (text) =>
      /^\d+$/.test(text) && Number(text) >= minimum && Number(text) <= maximum ? Number(text) : undefined,
    must: `a whole number from ${minimum} to ${maximum}`,
    range: [minimum, maximum],
  }
}

const FLAG: Format<boolean> = {
  parse: (text) => (/^(0|1|true|false)$/.test(text) ? isOn(text) : undefined),
  must: 'true or false (or 1 or 0)',
  words: ['true', 'false'],
}

/** Whether the text of a flag means true. */
export const isOn = (text: string): boolean => text === '1' || text === 'true'

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A setting: its name in the environment, what its text may be, and what it is where it is not set. */
export interface SettingRule<Value = unknown> {
  readonly name: string
  readonly format: Format<Value>
  readonly description: string
  readonly isRequired?: true
  /** A text of the format. Without one, a setting that is not set has no value. */
  readonly default?: string
  /** Production demands in addition a value, an encrypted scheme, or a flag that is off. */
  readonly production?: Production | undefined
}

/** A setting without its description, which is said last. */
interface Unexplained<Value> {
  means(description: string): SettingRule<Value>
}

/** A setting that every server needs. `production` names what production demands of it. */
export function required<Value>(name: string, format: Format<Value>, production?: Production): Unexplained<Value> {
  return { means: (description) => ({ name, format, description, isRequired: true, production }) }
}

/** A setting that may be missing. */
export function optional<Value>(
  name: string,
  format: Format<Value>,
  production?: Production,
): Unexplained<Value | undefined> {
  return { means: (description) => ({ name, format, description, production }) }
}

/** A setting with a default. */
export function withDefault<Value>(
  name: string,
  fallback: string,
  format: Format<Value>,
  production?: Production,
): Unexplained<Value> {
  return { means: (description) => ({ name, format, description, default: fallback, production }) }
}

/** A whole number with a default. */
export const whole = (name: string, fallback: number, range: Range) =>
  withDefault(name, String(fallback), wholeFrom(...range))
/** The same in seconds, whose value is in milliseconds. */
export const seconds = (name: string, fallback: number, range: Range) =>
  withDefault(
    name,
    String(fallback),
    mapped(wholeFrom(...range), (count) => count * 1000),
  )
/** A setting that is true or false. */
export const flag = (name: string, fallback: boolean, production?: Production) =>
  withDefault(name, String(fallback), FLAG, production)

/** The values of a group of settings, by the names that they have in the configuration. */
export type ValuesOf<Group> = {
  readonly [Key in keyof Group]: Group[Key] extends SettingRule<infer Value> ? Value : never
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
  /** The operator can do this about it. */
  readonly advice?: string
}
