import type { Test } from 'tap'

/**
 * Replaces a property until the test ends. `t.intercept` does that too, but it keeps every read with its stack: for a clock or a
 * timer, which are read thousands of times, that takes longer than what is tested.
 */
export function replace<Target extends object>(t: Test, target: Target, name: keyof Target, value: unknown): void {
  const before = Object.getOwnPropertyDescriptor(target, name)
  Object.defineProperty(target, name, { value, configurable: true, enumerable: true, writable: true })
  t.teardown(() => {
    if (before === undefined) Reflect.deleteProperty(target, name)
    else Object.defineProperty(target, name, before)
  })
}
