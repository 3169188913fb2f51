import { Ajv2020 } from 'ajv/dist/2020.js'
import { catalog } from '../../../src/proxy/catalog.ts'
import { openApiDocument } from '../../../src/openapi/document.ts'

/** A schema, or a reference to one. */
export type Schema = { readonly [key: string]: unknown }

interface Response {
  readonly $ref?: string
  readonly description: string
  readonly content?: Readonly<
    Record<string, { readonly schema: Schema; readonly examples?: Readonly<Record<string, Schema>> }>
  >
}

/** An operation as the document describes it. */
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly { readonly name?: string; readonly $ref?: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly security?: readonly unknown[]
  readonly responses: Readonly<Record<string, Response>>
}

/** What the tests read of `GET /openapi.json`. */
export interface OpenApi {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
    readonly examples: Readonly<Record<string, { readonly value: { readonly code: string; readonly status: number } }>>
  }
}

/** The document of a server that has every route. */
export function fullDocument(): OpenApi {
  const facts = {
    publicUrl: 'https://trading.test',
    sessionCookie: '__Host-session',
    oidc: undefined,
    maxBodyBytes: 1_048_576,
    idempotency: { requiredFor: new Set<string>(), maxBodyBytes: 262_144 },
  }
  return JSON.parse(JSON.stringify(openApiDocument(catalog('/partners/analytics/v1/overview'), facts))) as OpenApi
}

/** The response of an operation for a status: its own, or that of all that are not listed. */
export function responseOf(document: OpenApi, method: string, path: string, status: number): Response | undefined {
  const responses = document.paths[path]?.[method.toLowerCase()]?.responses
  const found = responses?.[status] ?? responses?.['default']
  const name = found?.$ref?.split('/').at(-1)
  return name === undefined ? found : document.components.responses[name]
}

/** Checks values against schemas of the document. The result lists what is wrong, so it is empty for a value that fits. */
export function checkerOf(document: object): (schema: Schema | undefined, value: unknown) => readonly string[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  ajv.addSchema({ ...document, $id: 'https://trading.test/openapi.json' })
  const compiled = new Map<Schema, ReturnType<typeof ajv.compile>>()
  return (schema, value) => {
    if (schema === undefined) return ['there is no schema']
    const check =
      compiled.get(schema) ??
      ajv.compile({ $id: `https://trading.test/openapi.json/${crypto.randomUUID()}`, ...absolute(schema) })
    compiled.set(schema, check)
    return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
  }
}

function absolute(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"https://trading.test/openapi.json#/')) as Schema
}
