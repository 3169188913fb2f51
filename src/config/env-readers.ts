import { parseEnv } from 'node:util'
import { SECRET_SETTINGS, settingRules } from './settings.ts'

/**
 * What the readers of a `.env` read differently. Node ends a value without quotes at the first `#`, Compose at one after white
 * space and `docker run --env-file` at none. The first two take quotes away, the third does not. Only Compose replaces `$NAME`.
 */
const DIFFERENCES: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['quotes at its ends', /^(["'`])[^]*\1$/],
  ['white space at an end', /^[ \t]|[ \t]$/],
  ['a #', /#/],
  ['a $ before a name', /\$[A-Za-z_{]/],
]
/** A line whose value has no quotes, and a `#` within a word. */
const CUT = /^\s*(?:export\s+)?(\w+)\s*=[ \t]*[^\s"'`#][^\n#]*(?<=\S)#/gm

/**
 * Returns warnings about settings whose values would be others if another program had read the same `.env`. A value itself does
 * not tell who has read it. Contains no value.
 */
export function ambiguousSettings(raw: Readonly<Record<string, string>>): string[] {
  return Object.keys(settingRules).flatMap((name) => {
    const value = raw[name]
    const found = value === undefined ? [] : DIFFERENCES.filter(([, pattern]) => pattern.test(value))
    if (found.length === 0) return []
    const what = found.map(([difference]) => difference).join(' and ')
    return `${name} has ${what}, which readers of .env read differently: ${remedyOf(name)}`
  })
}

/**
 * Returns warnings about settings that Node has cut at a `#` of its `.env`, where Compose and `docker run` would not.
 * @param text of the file
 * @param environment after it was read; a variable that was set before is not that of the file
 */
export function cutSettings(text: string, environment: Readonly<Record<string, string | undefined>>): string[] {
  const read = parseEnv(text)
  return [...text.matchAll(CUT)].flatMap(([, name = '']) =>
    Object.hasOwn(settingRules, name) && read[name] === environment[name]
      ? `${name} ends before a # in .env: ${remedyOf(name)}`
      : [],
  )
}

function remedyOf(name: string): string {
  const isSecret = SECRET_SETTINGS.some((secret) => secret === name)
  return isSecret ? `put it into a file, which ${name}_FILE names` : 'see docs/operating/install.md'
}
