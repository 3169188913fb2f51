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
/** A line of a `.env`, with the value as `docker run --env-file` reads it. */
const LINE = /^\s*(?:export\s+)?(\w+)\s*=(.*)$/gm
/** A value without quotes that has a `#` within a word. */
const CUT = /^[ \t]*[^\s"'`#][^#]*(?<=\S)#/

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
 * Returns warnings about settings that Node has read from its `.env` as Compose or `docker run` would not, where the values no
 * longer show it: Node ends them at a `#`, and takes quotes and white space away. Contains no value.
 * @param text of the file
 * @param environment after it was read; a variable that was set before is not that of the file
 */
export function ambiguousLines(text: string, environment: Readonly<Record<string, string | undefined>>): string[] {
  const read = parseEnv(text)
  const lines = new Map([...text.matchAll(LINE)].map(([, name = '', literal = '']) => [name, literal]))
  return [...lines].flatMap(([name, literal]) => {
    const value = read[name]
    if (!Object.hasOwn(settingRules, name) || value === undefined || value !== environment[name]) return []
    if (CUT.test(literal)) return [`${name} ends before a # in .env: ${remedyOf(name)}`]
    const isKnown = literal === value || DIFFERENCES.some(([, pattern]) => pattern.test(value))
    return isKnown ? [] : [`${name} has ${lostFrom(literal)} in .env, which docker run keeps: ${remedyOf(name)}`]
  })
}

/** What Node takes away from a value that it does not cut within a word. */
function lostFrom(literal: string): string {
  const text = literal.trim()
  if (/^["'`]/.test(text)) return 'quotes at its ends'
  return text.includes('#') ? 'a comment after it' : 'white space at an end'
}

function remedyOf(name: string): string {
  const isSecret = SECRET_SETTINGS.some((secret) => secret === name)
  return isSecret ? `put it into a file, which ${name}_FILE names` : 'see docs/operating/install.md'
}
