/** A part of an OpenAPI document, such as a JSON schema. */
export type Json = { readonly [key: string]: unknown }

/** The schema of any text. */
export const TEXT: Json = { type: 'string' }

/** A reference to a schema of the document. */
export function ref(schema: string): Json {
  return { $ref: `#/components/schemas/${schema}` }
}

/** The content of a body. */
export function content(mediaType: string, schema: Json): Json {
  return { [mediaType]: { schema } }
}

/** A parameter, which is required unless it is in the query. */
export function parameter(where: 'path' | 'query', name: string, schema: Json, description: string) {
  return { name, in: where, required: where !== 'query', schema, description }
}

/** The names of the components to which a part of the document refers. */
export function referencesIn(part: Json, section: 'examples' | 'responses' | 'schemas'): readonly string[] {
  const found = JSON.stringify(part).matchAll(new RegExp(`"#/components/${section}/([^"]+)"`, 'g'))
  return [...new Set(Array.from(found, ([, name = '']) => name))]
}
