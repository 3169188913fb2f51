import { readFileSync } from 'node:fs'

/** docs/frontends.md. */
export const FRONTENDS_GUIDE = readFileSync(new URL('../../../docs/frontends.md', import.meta.url), 'utf8')

/** A code block of docs/frontends.md. */
export interface DocumentedSample {
  readonly language: string
  /** The file name beside the language; empty if there is none. */
  readonly name: string
  readonly code: string
}

/** Every code block of docs/frontends.md. */
export const DOCUMENTED_SAMPLES: readonly DocumentedSample[] = [
  ...FRONTENDS_GUIDE.matchAll(/^```(\w*) ?(\S*)\n(.*?)^```/gms),
].map(([, language = '', name = '', code = '']) => ({ language, name, code }))

/** The code of a sample. @throws Error if docs/frontends.md has no sample with this name */
export function documentedSample(name: string): string {
  const found = DOCUMENTED_SAMPLES.find((sample) => sample.name === name)
  if (found === undefined) throw new Error(`docs/frontends.md has no sample ${name}`)
  return found.code
}
