import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse } from 'yaml'
import { readConfig } from '../../../src/config/config.ts'
import { SECRET_SETTINGS, settingRules } from '../../../src/config/settings.ts'
import { resourcesIn } from './manifests.ts'

type Environment = Record<string, string>

/** What the tests read of a service of docker-compose.yml. */
export interface ComposeService {
  readonly image?: string
  readonly profiles?: readonly string[]
  readonly environment?: Environment
  readonly secrets?: readonly string[]
  readonly networks?: readonly string[] | { readonly edge: { readonly aliases: readonly string[] } }
  readonly ports?: readonly string[]
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly logging: { readonly options: Readonly<Record<string, string>> }
  readonly deploy: {
    readonly replicas?: number
    readonly resources: { readonly limits: { readonly memory: string } }
  }
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
  readonly periodSeconds: number
  readonly failureThreshold: number
}

/** What the tests read of the only container in deploy/kubernetes/base. */
interface Container {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly volumeMounts: readonly { readonly mountPath: string }[]
  readonly resources: Readonly<Record<'requests' | 'limits', { readonly memory: string }>>
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean
    readonly readOnlyRootFilesystem: boolean
    readonly capabilities: { readonly drop: readonly string[] }
  }
}

/** What the tests read of the Deployment in deploy/kubernetes/base. */
interface Deployment {
  readonly spec: {
    readonly strategy: {
      readonly rollingUpdate: { readonly maxUnavailable: number; readonly maxSurge: number }
    }
    readonly selector: { readonly matchLabels: object }
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: {
        readonly containers: readonly [Container]
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number }
        readonly topologySpreadConstraints: readonly { readonly labelSelector: object; readonly topologyKey: string }[]
      }
    }
  }
}

/** What the tests read of a Service in deploy/kubernetes/base. */
interface Service {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly clusterIP?: string
    readonly publishNotReadyAddresses?: boolean
    readonly selector: object
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[]
  }
}

const ROOT = new URL('../../../', import.meta.url)

/** The text of a file of the project. */
export const projectFile = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
/** The names of every setting, and of the files that secrets may be in. */
export const settingNames = new Set([...Object.keys(settingRules), ...SECRET_SETTINGS.map((name) => `${name}_FILE`)])

/** A value of the compose file when no variable is set outside. */
const withDefaults = (value: string): string => value.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')

/** The bytes of a size as compose, Kubernetes and Redis write it, with binary units. */
export function bytesOf(size: string): number {
  const [, count = '', unit = ''] = /^(\d+)([kmg])i?b?$/i.exec(withDefaults(size)) ?? []
  return Number(count) * 1024 ** (['k', 'm', 'g'].indexOf(unit.toLowerCase()) + 1)
}

/** The milliseconds of a duration as compose and haproxy write it. */
export const msOf = (duration: string): number => Number(/^(\d+)s$/.exec(duration)?.[1]) * 1000

/** The configuration that an environment makes, with real files instead of those that it names. */
export function configOf(environment: Environment, secrets: string) {
  const here = Object.entries(environment).map(([name, value]) =>
    name.endsWith('_FILE') ? [name, join(secrets, value.replace(/.*\//, ''))] : [name, value],
  )
  return readConfig(Object.fromEntries(here) as Environment)
}

/** Runs deploy/make-secrets.sh. @returns the directory that now has the secrets */
export function makeSecrets(dir: string): string {
  execFileSync(new URL('deploy/make-secrets.sh', ROOT).pathname, [dir], { stdio: 'ignore' })
  return dir
}

/** docker-compose.yml, parsed. */
export function composeFile() {
  return parse(projectFile('docker-compose.yml'), { merge: true }) as {
    readonly services: Readonly<Record<'app' | 'balancer' | 'redis' | 'sandbox', ComposeService>>
    readonly secrets: Readonly<Record<string, { readonly file: string }>>
  }
}

/** The configuration of an instance in docker-compose.yml, when no variable is set outside. */
export function composeConfig(secrets: string) {
  const { environment = {} } = composeFile().services.app
  const entries = Object.entries(environment).map(([name, value]) => [name, withDefaults(value)])
  return configOf(Object.fromEntries(entries) as Environment, secrets)
}

/** The settings in a file of deploy/kubernetes that becomes a ConfigMap. */
const settingsFile = (path: string): Environment => parseEnv(projectFile(`deploy/kubernetes/${path}`)) as Environment

/** deploy/kubernetes/base with the settings of an overlay, without rendering it. @throws Error when it is no YAML */
export function kubernetesFile(overlay: 'production' | 'laptop' = 'production') {
  const files = ['deployment', 'services', 'availability', 'network-policy']
  const resources = files.flatMap((name) => resourcesIn(projectFile(`deploy/kubernetes/base/${name}.yaml`)))
  const byKind = new Map(resources.map((resource) => [resource.kind, resource]))
  const services = new Map(
    resources
      .filter(({ kind }) => kind === 'Service')
      .map((service) => [service.metadata.name, service as unknown as Service]),
  )
  const { spec } = byKind.get('Deployment') as unknown as Deployment
  const [container] = spec.template.spec.containers
  const own = Object.fromEntries(container.env.map(({ name, value }) => [name, value]))
  const environment = { ...settingsFile('base/settings.env'), ...settingsFile(`${overlay}/settings.env`), ...own }
  return { byKind, services, deployment: spec, pod: spec.template.spec, container, environment }
}
