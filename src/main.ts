import { handleSignals } from './ops/signals.ts'

// This comes before anything else is loaded: the kernel drops a signal for which PID 1, as in a container, has no
// handler. With an option a signal ends the process as usual: an exit code of 0 would mean that all is well.
if (process.argv.length === 2) handleSignals(() => process.exit(0))
await import('./start.ts')
