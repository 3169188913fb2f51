import type { Endpoint } from '../src/proxy/endpoint.ts'
import { catalog } from '../src/proxy/catalog.ts'
import { PROBLEM_CODES } from '../src/problem.ts'
import { CLOSE } from '../src/sockets/close-codes.ts'

/** Matches a pattern that lists words, such as `^(real|demo)$`. A parameter with any other pattern becomes any string. */
const WORDS = /^\^\(([a-z_|]+)\)\$$/

/** Generates the text of src/catalog.ts from the server's own tables. */
export function catalogSource(): string {
  const endpoints = catalog(undefined)
  const members = (['GET', 'POST', 'PATCH'] as const).map((method) => {
    const paths = endpoints.filter((endpoint) => endpoint.method === method).map(pathType)
    return `  ${method}:\n${paths.map((path) => `    | ${path}\n`).join('')}`
  })
  const closes = Object.values(CLOSE)
  const codes = [...new Set(closes.map(({ code }) => code))].sort((a, b) => a - b)
  const reasons = [...new Set(closes.map(({ reason }) => `'${reason}'`))]
  return `// Generated from the server's own tables by \`npm run build:client\`. Do not edit.

/** The paths of the trading service that the server serves below \`/api\`, by method. */
export interface Paths {
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

function pathType({ path, parameters }: Endpoint): string {
  const typed = path.replace(/:(\w+)/g, (_whole, name: string) => {
    const words = WORDS.exec(parameters?.[name]?.source ?? '')?.[1]
    return words === undefined
      ? '${string}'
      : `\${${words
          .split('|')
          .map((word) => `'${word}'`)
          .join(' | ')}}`
  })
  return typed.includes('${') ? `\`${typed}\`` : `'${typed}'`
}
