import { testStops } from '../support/server/npm-script.ts'
import { ALONE } from '../support/server/settings.ts'

const SERVER = { ...ALONE, HOST: '127.0.0.1' }

for (const name of ['start', 'dev']) await testStops([name, SERVER, ['PORT', 'OPS_PORT']])
