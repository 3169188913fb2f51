import asyncHooks, { type HookCallbacks } from 'node:async_hooks'
import module, { type RegisterHooksOptions } from 'node:module'

const { createHook } = asyncHooks
const { registerHooks } = module

/**
 * Loaded before tap by `npm test`. tap hooks into every import, to record it for coverage and for mocks, which is a third
 * of the start of a test file. Without coverage nobody reads the records, and no test mocks a module.
 */
function othersHooks(hooks: RegisterHooksOptions): ReturnType<typeof registerHooks> {
  return isCalledFrom('/@tapjs/') ? { deregister: () => undefined } : registerHooks(hooks)
}

/**
 * tap follows every promise and every socket, to find the test to which an error that nobody catches belongs: a tenth to a quarter of
 * the processor time of a test. Without that, such an error ends the file, which fails with its stack.
 */
function othersHook(callbacks: HookCallbacks): ReturnType<typeof createHook> {
  const hook = createHook(callbacks)
  return isCalledFrom('/async-hook-domain/') ? Object.assign(hook, { enable: () => hook }) : hook
}

function isCalledFrom(folder: string): boolean {
  const [, , , caller = ''] = (new Error().stack ?? '').split('\n')
  return caller.includes(folder)
}

Object.assign(asyncHooks, { createHook: othersHook })
Object.assign(module, { registerHooks: othersHooks })
module.syncBuiltinESMExports()
