/** Settings of a server without a provider and an upstream. */
export const ALONE = {
  PUBLIC_URL: 'http://localhost:3000',
  AUTH_URL: 'http://127.0.0.1:1',
  API_URL: 'http://127.0.0.1:1',
  WS_URL: 'ws://127.0.0.1:1',
  CLIENT_ID: 'client',
}

const { NODE_COMPILE_CACHE } = process.env

/** The environment of every Node.js process that a test starts, with the compile cache of `npm test`. */
export const COMPILED: Readonly<Record<string, string>> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }
