import { test } from 'tap'
import { bytesOf, configOf, kubernetesFile, makeSecrets, settingNames } from '../support/deployment-files.ts'

interface PolicyRule {
  readonly ports: readonly { readonly port: string }[]
}

await test('kubernetes.yaml names only settings that exist, and production accepts them', (t) => {
  const { environment, container } = kubernetesFile()
  for (const [name, value] of Object.entries(environment)) {
    t.ok(settingNames.has(name), `${name} is a setting`)
    if (!name.endsWith('_FILE')) continue
    t.ok(
      container.volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
      `${name} is in a volume that is mounted`,
    )
  }
  t.ok(configOf(environment, makeSecrets(t.testdir({}))).production)
  t.end()
})

await test('a pod drains before Kubernetes kills it, and after its readiness probe has failed', (t) => {
  const { environment, container, pod, deployment } = kubernetesFile()
  const { drainMs, drainWaitMs } = configOf(environment, makeSecrets(t.testdir({})))
  t.ok(pod.terminationGracePeriodSeconds * 1000 > drainMs, 'terminationGracePeriodSeconds exceeds DRAIN_SECONDS')
  const { periodSeconds, failureThreshold } = container.readinessProbe
  t.ok(drainWaitMs > periodSeconds * failureThreshold * 1000, 'DRAIN_WAIT_SECONDS exceeds the failed probes')
  const { maxUnavailable, maxSurge } = deployment.strategy.rollingUpdate
  t.ok(maxUnavailable < maxSurge, 'a new pod is ready before an old one goes')
  const budget = kubernetesFile().byKind.get('PodDisruptionBudget') as unknown as {
    spec: { maxUnavailable: number }
  }
  t.ok(budget.spec.maxUnavailable < deployment.replicas, 'a disruption leaves pods that serve')
  t.end()
})

await test('the resources of kubernetes.yaml agree on ports and labels', (t) => {
  const { byKind, environment, container, deployment } = kubernetesFile()
  const { listen } = configOf(environment, makeSecrets(t.testdir({})))
  const ports = Object.fromEntries(container.ports.map((each) => [each.name, each.containerPort]))
  t.same(ports, { http: listen.port, ops: listen.opsPort })
  for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    t.equal(ports[httpGet.port], listen.opsPort, `the probe of ${httpGet.path} uses the ops port`)
  }
  const { selector, template } = deployment
  const scraped = Number(template.metadata.annotations['prometheus.io/port'])
  t.equal(scraped, listen.opsPort, 'metrics are scraped from the ops port')
  t.same(template.metadata.labels, selector.matchLabels)
  t.same(
    template.spec.topologySpreadConstraints.map(({ labelSelector }) => labelSelector),
    [selector],
  )
  t.match(byKind.get('Service'), { spec: { selector: selector.matchLabels } })
  t.match(byKind.get('PodDisruptionBudget'), { spec: { selector } })
  t.match(byKind.get('NetworkPolicy'), { spec: { podSelector: selector } })
  const service = byKind.get('Service') as unknown as { spec: { ports: { targetPort: string }[] } }
  for (const { targetPort } of service.spec.ports) {
    t.equal(ports[targetPort], listen.port, 'the service leads to the public port')
  }
  const policy = byKind.get('NetworkPolicy') as unknown as { spec: { ingress: PolicyRule[] } }
  const allowed = policy.spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port))
  t.same(new Set(allowed), new Set(Object.keys(ports)), 'the policy covers every port')
  const { requests, limits } = container.resources
  t.ok(bytesOf(requests.memory) <= bytesOf(limits.memory), 'a pod requests no more memory than it may have')
  t.end()
})
