import { test } from 'tap'
import { BACKCHANNEL, LOGGED_OUT } from '../../src/openapi/provider-logout-paths.ts'
import { fullDocument } from '../support/openapi/document.ts'

type Part = Readonly<Record<string, unknown>>

/** What some generator cannot read, or reads as something else (npm run test:generators). */
const FAULTS: Readonly<Record<string, (part: Part, path: string) => boolean>> = {
  'a component whose name is no identifier': (part, path) =>
    /^\/components\/\w+$/.test(path) && !Object.keys(part).every((name) => /^[A-Za-z_]\w*$/.test(name)),
  'a range of statuses': (part, path) =>
    path.endsWith('/responses') && Object.keys(part).some((status) => /^[1-5]XX$/.test(status)),
  'oneOf in place of anyOf': ({ oneOf }) => oneOf !== undefined,
  'const in place of enum': (part) => 'const' in part,
  'a list of types in place of anyOf': ({ type }) => Array.isArray(type),
  'an enum without a type': (part) => Array.isArray(part['enum']) && part['type'] === undefined,
  'a format that is taken for that of another origin': ({ format }) => format === 'uri-reference',
}

function faultsOf(part: unknown, path = ''): readonly string[] {
  if (typeof part !== 'object' || part === null) return []
  const own = Object.entries(FAULTS).flatMap(([fault, isAt]) => (isAt(part as Part, path) ? [`${path}: ${fault}`] : []))
  return [...own, ...Object.entries(part).flatMap(([name, value]) => faultsOf(value, `${path}/${name}`))]
}

await test('/openapi.json has nothing that a generator of clients misunderstands', (t) => {
  const { paths, components } = fullDocument()
  t.same(faultsOf({ paths: { ...paths, ...LOGGED_OUT, ...BACKCHANNEL }, components }), [])
  const responses = { '2XX': { schema: { oneOf: [{ const: 1 }, { enum: [1] }] } } }
  const schemas = { A: { type: ['number', 'string'] }, B: { format: 'uri-reference' } }
  const faulty = { paths: { '/a': { get: { responses } } }, components: { schemas, responses: { '400.a': {} } } }
  t.equal(faultsOf(faulty).length, Object.keys(FAULTS).length, faultsOf(faulty).join('\n'))
  t.end()
})
