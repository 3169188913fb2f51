/** Loaded into a process of the server before it (`node --import`): SIGUSR2 has it collect its garbage, all of it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
process.on('SIGUSR2', () => collect())
