/** A part of an OpenAPI document, such as a JSON schema. */
export type Json = { readonly [key: string]: unknown }

/** The schema of any text. */
export const TEXT: Json = { type: 'string' }

/** A reference to a schema of the document. */
export function ref(schema: string): Json {
  return { $ref: `#/components/schemas/${schema}` }
}
