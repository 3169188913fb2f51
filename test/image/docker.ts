import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The root folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const run = promisify(execFile)
/** The name of the image and of the compose project that the tests create. */
export const NAME = 'bff-image-test'

interface ExecuteOptions {
  readonly cwd?: string
  /** Additions to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a program until it exits. @returns its stdout. @throws Error with its stderr if it fails */
export async function execute(
  program: string,
  args: readonly string[],
  { cwd = ROOT, env = {} }: ExecuteOptions = {},
): Promise<string> {
  const { stdout } = await run(program, args, {
    cwd,
    maxBuffer: 64 * 1024 * 1024,
    // Older versions of Docker use BuildKit only if this is set.
    env: { ...process.env, DOCKER_BUILDKIT: '1', ...env },
  })
  return stdout
}

/** Runs docker as {@link execute} does. */
export const docker = (...args: string[]): Promise<string> => execute('docker', args)

/** A container that was started. */
export class Container {
  readonly id: string

  private constructor(id: string) {
    this.id = id
  }

  /** Starts a read-only container without capabilities. @param command replaces the command of the image */
  static async start(
    image: string,
    settings: Readonly<Record<string, string>>,
    command: readonly string[] = [],
  ): Promise<Container> {
    const environment = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const strict = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
    return new Container((await docker('run', '--detach', ...strict, ...environment, image, ...command)).trim())
  }

  /** The output of `docker inspect`. @param format a Go template */
  async inspect(format: string): Promise<string> {
    return (await docker('inspect', '--format', format, this.id)).trim()
  }

  /** Evaluates an ES module in the container. @returns its stdout */
  evaluate(code: string): Promise<string> {
    return docker('exec', this.id, 'node', '--input-type=module', '--eval', code)
  }

  /** Requests an address from within the container. @returns the status, or 0 without a response */
  async statusOf(address: string): Promise<number> {
    const code = `const { status } = await fetch('${address}').catch(() => ({ status: 0 })); process.stdout.write(String(status))`
    return Number(await this.evaluate(code))
  }

  /** Resolves with the exit code. */
  async exited(): Promise<number> {
    return Number(await docker('wait', this.id))
  }

  remove(): Promise<string> {
    return docker('rm', '--force', this.id)
  }
}
