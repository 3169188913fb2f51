import type { Config } from '../config/config.ts'
import { workerEnvironment } from '../config/worker-environment.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { exitAfterFlush } from './exit.ts'
import type { OpsPort } from './ops-listener.ts'
import { installShutdown } from './shutdown.ts'
import { Supervisor } from './supervisor.ts'

/** Runs the server in several worker processes. This process has the ops listener for all of them. */
export async function supervise(config: Config, { log, droppedLines }: ServerLog, ops: OpsPort): Promise<void> {
  const supervisor = new Supervisor({
    count: config.workers,
    environment: workerEnvironment(config),
    log,
    droppedLines,
    giveUp: (exitCode) => {
      supervisor.kill()
      exitAfterFlush(log, exitCode)
    },
  })
  installShutdown({
    log,
    drainMs: config.drainMs,
    close: () => supervisor.stop(),
    abandon: () => supervisor.kill(),
  })
  await ops.report(supervisor)
  supervisor.start()
}
