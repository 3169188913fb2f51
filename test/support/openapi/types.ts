import { registerHooks } from 'node:module'

/**
 * Generates TypeScript from an OpenAPI document, as frontend developers do. openapi-typescript needs the programming
 * interface of TypeScript 5, which TypeScript 7 does not have, so it gets a TypeScript of its own.
 */
export async function typesOf(document: object): Promise<string> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? 'typescript-5' : specifier, context),
  })
  const { astToString, default: openapiTS } = await import('openapi-typescript')
  hooks.deregister()
  return astToString(await openapiTS(JSON.stringify(document)))
}
