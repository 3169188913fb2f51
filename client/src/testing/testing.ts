export { createFakeClient, type FakeClient, type FakeOptions } from './fake-client.ts'
export type { FakeServer } from './fake-server.ts'
export type { FakeSession } from './fake-session.ts'
export { problem, type FakeAnswer, type FakeCall } from './fake-api.ts'
export type { FakeBody, FakeMessage, FakeReply, StreamMembers } from './fake-trading.ts'
export type { NetworkState } from './fake-network.ts'

declare const process: { readonly env: { readonly NODE_ENV?: string } }

/**
 * Bundlers replace `import.meta.env` and `process.env.NODE_ENV` where they are written out. Where a browser runs the module
 * unchanged, nothing says that this is a test.
 */
function isProduction(): boolean {
  const isBuilt = (import.meta as { env?: { readonly PROD?: boolean } }).env?.PROD
  if (isBuilt !== undefined) return isBuilt
  try {
    return process.env.NODE_ENV === 'production'
  } catch {
    return true
  }
}

if (isProduction()) throw new Error('trading-bff-client/testing is for tests, and not for production builds')
