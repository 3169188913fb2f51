import { symlinkSync } from 'node:fs'

// Run in a sandbox of Stryker, which builds before it links the packages into it. This checks no types, since the
// compiler would refuse many slips.
symlinkSync(process.argv[2] ?? '', 'node_modules')
const { writeModules } = await import('../../client/build.ts')
await writeModules('client/dist')
