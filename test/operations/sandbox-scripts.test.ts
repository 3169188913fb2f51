import { testStops } from '../support/server/npm-script.ts'

await testStops(['demo', {}, ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']])
await testStops(['sandbox', {}, ['PROVIDER_PORT', 'UPSTREAM_PORT']])
