import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Resource } from './manifests.ts'

/** A class of a package with schemas. */
type Model = new (data: unknown) => { validate(): void }

/** The module that has the published schema of a kind of resource. */
function moduleOf({ apiVersion, kind }: Resource): string {
  const operator = apiVersion.startsWith('monitoring.coreos.com/')
  return `${operator ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models'}/${apiVersion}/${kind}`
}

/** What the published schema of a resource says against it, in words; undefined if nothing. It allows unknown fields. */
export async function schemaFault(resource: Resource): Promise<string | undefined> {
  const models = (await import(moduleOf(resource))) as Readonly<Record<string, Model>>
  const model = models[resource.kind]
  if (model === undefined) throw new Error(`no schema of ${resource.apiVersion} ${resource.kind}`)
  try {
    new model(resource).validate()
    return undefined
  } catch (error) {
    return String(error)
  }
}

/**
 * What the published types of resources say against them: above all fields that do not exist, such as misspelled ones,
 * which Kubernetes would ignore. @param dir an empty folder inside of the project
 * @returns the errors of the compiler; empty if there are none
 */
export function typeFaults(resources: readonly Resource[], dir: string): string {
  const lines = resources.map((resource) => {
    const { kind } = resource
    const type = `import('${moduleOf(resource)}').I${kind}`
    return `;(${JSON.stringify(resource)}) satisfies ${type}\n`
  })
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'manifests.ts'), `export {}\n${lines.join('')}`)
  const compilerOptions = { noEmit: true, strict: true, module: 'nodenext', skipLibCheck: true, types: [] }
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['manifests.ts'] }))
  // Without the options that the test runner adds to every process, with which the compiler does not start.
  const command = ['-u', 'NODE_OPTIONS', 'tsc', '-p', dir]
  const { status, stdout, stderr } = spawnSync('env', command, { encoding: 'utf8' })
  if (status !== 0 && stdout === '') throw new Error(`tsc: ${stderr}`)
  return stdout
}
