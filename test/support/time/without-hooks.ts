import module, { type RegisterHooksOptions } from 'node:module'

const { registerHooks } = module

/**
 * Loaded before tap by `npm test`. tap hooks into every import, to record it for coverage and for mocks, which is a third
 * of the start of a test file. Without coverage nobody reads the records, and no test mocks a module.
 */
function othersHooks(hooks: RegisterHooksOptions): ReturnType<typeof registerHooks> {
  const [, , caller = ''] = (new Error().stack ?? '').split('\n')
  return caller.includes('/@tapjs/') ? { deregister: () => undefined } : registerHooks(hooks)
}

Object.assign(module, { registerHooks: othersHooks })
module.syncBuiltinESMExports()
