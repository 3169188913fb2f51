import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Plan } from '../plan.ts'

const PATCHES = new URL('patches/', import.meta.url)

/** The checkout that patches are made against. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** What the plans of a patch have in place of what their seed says. */
export interface Wishes {
  readonly fleet?: Partial<Plan['fleet']>
  /** The only faults; none if the list is empty. */
  readonly faults?: readonly string[]
  /** Whether all of them come at a time, one soon after the other, at the same instance. Else they come one by one. */
  readonly isTogether?: boolean
  /** How many operators there are, who do not know of each other. */
  readonly operators?: number
  /** How many users there are with raw clients, if more than usual. */
  readonly users?: number
  /** How long each fault lasts (ms), if not as long as it says. */
  readonly lastsMs?: number
  /** How long a run lasts (ms), if what it waits for takes longer than usual. */
  readonly forMs?: number
}

/** One place of a file: these lines become those. */
interface Hunk {
  readonly before: string
  readonly after: string
}

/** A change of the product that breaks a promise: a repair that is taken back, or a slip. */
export interface Patch {
  readonly name: string
  /** What it breaks, in a sentence. */
  readonly sentence: string
  readonly wishes: Wishes
  readonly files: ReadonlyMap<string, readonly Hunk[]>
}

/** All patches, in the order of their names. */
export function allPatches(): Patch[] {
  const names = readdirSync(PATCHES).filter((file) => file.endsWith('.patch'))
  return names.toSorted().map((file) => parsePatch(file.replace(/\.patch$/, ''), readPatch(file)))
}

const readPatch = (file: string): string => readFileSync(new URL(file, PATCHES), 'utf8')

/** Reads a unified diff, before which is a paragraph with the sentence, and perhaps a line `Plan: {…}`. */
export function parsePatch(name: string, text: string): Patch {
  const begin = text.search(/^--- /m)
  if (begin < 0) throw new Error(`${name}: no diff`)
  const head = text.slice(0, begin)
  const plan = /^Plan: (.*)$/m.exec(head)?.[1]
  const sentence = head.replace(/^Plan: .*$/m, '').trim()
  const files = new Map<string, Hunk[]>()
  let hunks: Hunk[] = []
  for (const part of text.slice(begin).split(/^(?=--- |@@ )/m)) {
    const file = /^--- a\/(\S+)\n\+\+\+ b\/\1\n/.exec(part)?.[1]
    if (file !== undefined) files.set(file, (hunks = []))
    else hunks.push(hunkOf(part))
  }
  return { name, sentence: sentence.replaceAll('\n', ' '), wishes: JSON.parse(plan ?? '{}') as Wishes, files }
}

function hunkOf(part: string): Hunk {
  const lines = part.replace(/\n$/, '').split('\n').slice(1)
  const without = (sign: string): string =>
    lines
      .filter((line) => !line.startsWith(sign))
      .map((line) => `${line.slice(1)}\n`)
      .join('')
  return { before: without('+'), after: without('-') }
}

/** Applies what a patch has for a file. Where the lines are does not matter. @throws Error if they are not there, or twice */
export function applied(text: string, hunks: readonly Hunk[]): string {
  return hunks.reduce((now, { before, after }) => {
    const [start, end, ...more] = now.split(before)
    if (end === undefined || more.length > 0) throw new Error(`not there exactly once:\n${before}`)
    return `${start}${after}${end}`
  }, text)
}
