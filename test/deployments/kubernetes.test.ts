import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { BlockList, isIPv6 } from 'node:net'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { OVERLAYS, rendered, renderedAt, type Resource } from '../support/deployment/manifests.ts'
import { schemaFault, typeFaults } from '../support/deployment/schemas.ts'

/** What the tests read of pods. */
interface Pod {
  readonly automountServiceAccountToken: boolean
  readonly securityContext: { readonly runAsNonRoot: boolean; readonly seccompProfile: { readonly type: string } }
  readonly initContainers?: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes?: readonly { readonly secret?: { readonly secretName: string } }[]
}

interface Container {
  readonly image: string
  readonly env?: readonly { readonly name: string; readonly valueFrom?: object }[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly resources: { readonly limits: { readonly memory: string } }
  readonly securityContext: object
  readonly volumeMounts?: readonly object[]
}

interface Workload extends Resource {
  readonly spec: {
    readonly replicas?: number
    readonly selector: { readonly matchLabels: object }
    readonly template: { readonly metadata: { readonly labels: object }; readonly spec: Pod }
  }
}

/** What the tests read of a peer of a NetworkPolicy. */
interface Peer {
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] }
}

const KUBERNETES = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url))

const workloads = (resources: readonly Resource[]): Workload[] =>
  resources.filter(({ kind }) => kind === 'Deployment') as Workload[]
const namesOf = (resources: readonly Resource[], kind: string): string[] =>
  resources.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name)
const kinds = (resources: readonly Resource[]): string[] => resources.map(({ kind }) => kind).toSorted()

for (const overlay of OVERLAYS) {
  await test(`kustomize renders deploy/kubernetes/${overlay}, and every resource fits its published schema`, async (t) => {
    const resources = rendered(overlay)
    for (const resource of resources) {
      t.equal(await schemaFault(resource), undefined, `${resource.kind} ${resource.metadata.name}`)
    }
    t.equal(typeFaults(resources, t.testdir({})), '', 'and has no field that does not exist')
    t.same(
      resources.filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace === undefined),
      [],
      'every resource is in the namespace',
    )
  })

  await test(`deploy/kubernetes/${overlay}: every pod is hardened, and what it refers to is there`, (t) => {
    const resources = rendered(overlay)
    for (const { metadata, spec } of workloads(resources)) {
      const { template, selector } = spec
      t.match(template.metadata.labels, selector.matchLabels, metadata.name)
      const pod = template.spec
      t.match(pod, {
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      })
      for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
        t.match(container.image, /.:./, 'an image has a tag')
        t.match(container.securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        t.ok(container.resources.limits.memory, `${container.image}: its memory is limited`)
        for (const { configMapRef } of container.envFrom ?? []) {
          t.ok(namesOf(resources, 'ConfigMap').includes(configMapRef.name), configMapRef.name)
        }
      }
    }
    t.end()
  })
}

await test('deploy/kubernetes/production scales and is watched; its Secret is made by the operator', (t) => {
  const resources = rendered('production')
  t.same(
    kinds(resources),
    [
      'ConfigMap',
      'Deployment',
      'HorizontalPodAutoscaler',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'PodMonitor',
      'PrometheusRule',
      'Service',
      'Service',
    ],
    'and there is no Secret that anybody could apply unchanged',
  )
  const [workload] = workloads(resources)
  t.notOk(workload && 'replicas' in workload.spec, 'the autoscaler says how many there are')
  const rule = resources.find(({ kind }) => kind === 'PrometheusRule') as unknown as { spec: object }
  const file = join(t.testdir({}), 'rules.json')
  writeFileSync(file, JSON.stringify(rule.spec))
  t.doesNotThrow(() => execFileSync('promtool', ['check', 'rules', file], { stdio: 'pipe' }))
  t.end()
})

await test('deploy/kubernetes/production: instances reach DNS, Redis, and the provider and upstream, which are not inside', (t) => {
  const policy = rendered('production').find(({ kind }) => kind === 'NetworkPolicy') as unknown as {
    spec: { egress: { to: Peer[]; ports: { port: number; protocol?: string }[] }[] }
  }
  const { egress } = policy.spec
  t.same(
    egress.map(({ ports }) => ports.map(({ port, protocol = 'TCP' }) => `${protocol} ${port}`)),
    [['UDP 53', 'TCP 53'], ['TCP 443'], ['TCP 6379']],
  )
  const [, outside] = egress
  const inside = new BlockList()
  for (const range of outside?.to.flatMap(({ ipBlock }) => ipBlock?.except ?? []) ?? []) {
    const [network = '', bits] = range.split('/')
    inside.addSubnet(network, Number(bits), isIPv6(network) ? 'ipv6' : 'ipv4')
  }
  for (const address of ['10.1.2.3', '100.64.0.1', '169.254.169.254', '172.20.0.1', '192.168.1.1', '127.0.0.1']) {
    t.ok(inside.check(address), address)
  }
  for (const address of ['fd00:ec2::254', 'fe80::1']) t.ok(inside.check(address, 'ipv6'), address)
  t.notOk(inside.check('93.184.215.14'))
  t.end()
})

await test('deploy/kubernetes/laptop has a Secret, a Redis and the sandbox, and no autoscaler', (t) => {
  const resources = rendered('laptop')
  const replicas = Object.fromEntries(workloads(resources).map(({ metadata, spec }) => [metadata.name, spec.replicas]))
  t.same(replicas, { redis: 1, sandbox: 1, 'trading-bff': 2 })
  t.same(namesOf(resources, 'HorizontalPodAutoscaler'), [])
  const app = workloads(resources).find(({ metadata }) => metadata.name === 'trading-bff')
  const secrets = (app?.spec.template.spec.volumes ?? []).flatMap(({ secret }) => secret?.secretName ?? [])
  t.same(secrets, namesOf(resources, 'Secret'), 'it follows the hash of its content')
  t.end()
})

await test('deploy/kubernetes/secrets-by-reference takes the secrets from the environment, and mounts no file', async (t) => {
  const dir = t.testdir({})
  const [production, component] = ['production', 'secrets-by-reference'].map((name) =>
    relative(dir, join(KUBERNETES, name)),
  )
  writeFileSync(join(dir, 'kustomization.yaml'), `resources: [${production}]\ncomponents: [${component}]\n`)
  const resources = renderedAt(dir)
  for (const resource of resources) t.equal(await schemaFault(resource), undefined, resource.kind)
  const [workload] = workloads(resources)
  const { containers, volumes = [] } = workload?.spec.template.spec ?? { containers: [] }
  t.same(volumes, [])
  t.match(containers, [
    {
      env: [
        { name: 'SESSION_SECRETS', valueFrom: { secretKeyRef: { name: 'trading-bff', key: 'session-secrets' } } },
        { name: 'REDIS_URL', valueFrom: { secretKeyRef: { name: 'trading-bff', key: 'redis-url' } } },
      ],
    },
  ])
  t.equal(containers[0]?.env?.length, 2)
  t.same(containers[0]?.volumeMounts ?? [], [])
})

await test('The checks of these tests find a misspelled field, a wrong type and a wrong value', async (t) => {
  const [workload] = workloads(rendered('production'))
  if (workload === undefined) throw new Error('there is a Deployment')
  const spec = (change: object): Resource => ({ ...workload, spec: { ...workload.spec, ...change } }) as Resource
  const misspelled = spec({ minReadySecond: 5 })
  t.equal(await schemaFault(misspelled), undefined, 'the schemas allow what they do not know')
  t.match(typeFaults([misspelled], join(t.testdir({}), 'misspelled')), 'minReadySecond')
  t.match(await schemaFault(spec({ minReadySeconds: '5' })), 'minReadySeconds')
  t.match(await schemaFault({ ...workload, apiVersion: 'apps/v1', metadata: 1 } as unknown as Resource), 'metadata')
})
