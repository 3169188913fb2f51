import type { Endpoint } from '../src/proxy/endpoint.ts'
import { catalog } from '../src/proxy/catalog.ts'
import type { BodyName } from '../src/proxy/upstream-bodies.ts'
import { bodiesSource, jsonType } from './generate-bodies.ts'
import { PROBLEM_CODES } from '../src/problem.ts'
import { CLOSE } from '../src/sockets/close-codes.ts'

/** Matches a pattern that lists words, such as `^(real|demo)$`. A parameter with any other pattern becomes any string. */
const WORDS = /^\^\(([a-z_|]+)\)\$$/

/** Generates the text of the files in src/ that come from the server's own tables, by name. */
export function generatedSources(): Readonly<Record<string, string>> {
  const used = catalog(undefined).flatMap(bodiesOf)
  return { 'catalog.ts': catalogSource(), 'bodies.ts': bodiesSource(used) }
}

function catalogSource(): string {
  const endpoints = catalog(undefined)
  const members = (['GET', 'POST', 'PATCH'] as const).map((method) => {
    const paths = endpoints.filter((endpoint) => endpoint.method === method).flatMap(pathMembers)
    return `  readonly ${method}: {\n${paths.map((path) => `    ${path}\n`).join('')}  }\n`
  })
  const names = new Set(endpoints.flatMap(bodiesOf).map(jsonType))
  const bodyNames = [...names]
    .filter((name) => /^[A-Z]/.test(name))
    .map((name) => `  ${name},\n`)
    .join('')
  const closes = Object.values(CLOSE)
  const codes = [...new Set(closes.map(({ code }) => code))].sort((a, b) => a - b)
  const reasons = [...new Set(closes.map(({ reason }) => `'${reason}'`))]
  return `// Generated from the server's own tables by \`npm run build:client\`. Do not edit.

import type {
${bodyNames}} from './bodies.ts'

/**
 * The paths of the trading service that the server serves below \`/api\`, by method. Each has the type of the JSON in its
 * response as far as it is publicly documented; \`never\` means that the response is a text.
 */
export interface Responses {
${members.join('')}}

/** The \`code\` of a problem. A newer server may send others. */
${union(
  'ProblemCode',
  PROBLEM_CODES.map((code) => `'${code}'`),
)}
/** The close codes of the server itself. Any other comes from the trading service or from the network. */
${union('CloseCode', codes.map(String))}
/** The close reasons of the server itself, without \`;retry_after=\`. */
${union('CloseReason', reasons)}`
}

function union(name: string, members: readonly string[]): string {
  return `export type ${name} =\n${members.map((member) => `  | ${member}\n`).join('')}`
}

function bodiesOf({ response }: Endpoint): readonly (BodyName | undefined)[] {
  return typeof response === 'object' ? Object.values(response) : [response]
}

/** The members of an interface for the path of an endpoint: one for each word of its parameters. */
function pathMembers(endpoint: Endpoint): string[] {
  const body = bodiesOf(endpoint).map(jsonType).join(' | ')
  let paths = ['']
  for (const [, literal = '', name] of endpoint.path.matchAll(/([^:]+)(?::(\w+))?/g)) {
    const words = WORDS.exec(endpoint.parameters?.[name ?? '']?.source ?? '')?.[1]?.split('|')
    const values = name === undefined ? [''] : (words ?? ['${string}'])
    paths = paths.flatMap((path) => values.map((value) => path + literal + value))
  }
  return paths.map((path) => `readonly ${path.includes('${') ? `[path: \`${path}\`]` : `'${path}'`}: ${body}`)
}
