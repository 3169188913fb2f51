/** A client for each way in which Orval can call a server. */
const output = (client) => ({
  target: `./${client}-client.ts`,
  client,
  httpClient: 'fetch',
  override: { query: { version: 5 } },
})

module.exports = {
  fetch: { input: './openapi.json', output: output('fetch') },
  'react-query': { input: './openapi.json', output: output('react-query') },
  zod: { input: './openapi.json', output: output('zod') },
}
