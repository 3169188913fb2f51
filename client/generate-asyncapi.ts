import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Schema } from './generate-types.ts'

const SOURCE = new URL('../docs/asyncapi.yaml', import.meta.url)

interface Reference {
  readonly $ref: string
}

/** The parts of docs/asyncapi.yaml from which something is generated. */
export interface AsyncApi {
  readonly operations: Readonly<Record<string, { readonly messages: readonly Reference[] }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** The AsyncAPI document of the sockets, as it is written in docs/asyncapi.yaml. */
export function asyncApi(): AsyncApi {
  return parse(readFileSync(SOURCE, 'utf8')) as AsyncApi
}

/** The text of src/openapi/asyncapi.json, which the server sends: it has no parser for YAML. */
export function asyncApiJson(): string {
  return `${JSON.stringify(asyncApi())}\n`
}
