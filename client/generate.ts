import type { Endpoint } from '../src/proxy/endpoint.ts'
import { catalog } from '../src/proxy/catalog.ts'
import { PROBLEM_CODES } from '../src/problem.ts'
import { CLOSE } from '../src/sockets/close-codes.ts'

/** A pattern that lists words, as `^(real|demo)$` does; any other becomes any string. */
const WORDS = /^\^\(([a-z_|]+)\)\$$/

/** The text of src/catalog.ts: what the package knows of the server, from the tables that the server itself uses. */
export function catalogSource(): string {
  const endpoints = catalog(undefined)
  const paths = (['GET', 'POST', 'PATCH'] as const).map((method) => {
    const own = endpoints.filter((endpoint) => endpoint.method === method).map(pathType)
    return `  ${method}:\n${own.map((path) => `    | ${path}\n`).join('')}`
  })
  const closes = Object.values(CLOSE)
  const codes = [...new Set(closes.map(({ code }) => code))].sort((a, b) => a - b)
  const reasons = [...new Set(closes.map(({ reason }) => `'${reason}'`))]
  return `// Generated from the server's own tables by \`npm run build:client\`. Do not edit.

/** The paths that the server passes on, by method. */
export interface Paths {
${paths.join('')}}

/** The \`code\` of a problem. A newer server may have more. */
${union(
  'ProblemCode',
  PROBLEM_CODES.map((code) => `'${code}'`),
)}
/** The close codes of the server's own making. Any other is the trading service's, or the network's. */
${union('CloseCode', codes.map(String))}
/** The reasons that go with them, without \`;retry_after=\`. */
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
