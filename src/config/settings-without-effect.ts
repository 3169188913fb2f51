import { feedRules } from './feed-settings.ts'

/** Settings that only matter together with another one. */
const DEPENDENT: readonly { readonly needs: string; readonly names: readonly string[] }[] = [
  { needs: 'PUBLIC_FEED=shared', names: Object.keys(feedRules).filter((name) => name !== 'PUBLIC_FEED') },
  {
    needs: 'UPSTREAM_BUDGET',
    names: ['UPSTREAM_BUDGET_NAME', 'UPSTREAM_BUDGET_SHARES', 'UPSTREAM_BUDGET_ALONE', 'UPSTREAM_BUDGET_INSTANCES'],
  },
  { needs: 'STATIC_DIR', names: ['STATIC_CSP'] },
]
const PROXY = /^(?:https?|all)_proxy$/i

/**
 * Returns warnings about variables that are set and do nothing: settings that need another one, and proxies for outgoing
 * connections. Contains no value, since the address of a proxy may have a password.
 */
export function settingsWithoutEffect(raw: Readonly<Record<string, string>>): string[] {
  const dependent = DEPENDENT.flatMap(({ needs, names }) => {
    const [name = '', value] = needs.split('=')
    const set = names.filter((setting) => raw[setting] !== undefined)
    const isMet = value === undefined ? raw[name] !== undefined : raw[name] === value
    return isMet || set.length === 0 ? [] : `${set.join(', ')}: no effect without ${needs}`
  })
  const proxies = Object.keys(raw).filter((name) => PROXY.test(name))
  return [...dependent, ...proxies.map((name) => `${name} is not obeyed: this server connects directly`)]
}
