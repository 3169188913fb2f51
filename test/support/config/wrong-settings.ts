import { ConfigError, readConfig } from '../../../src/config/config.ts'

/** The settings that production requires. Their secrets must not be printed. */
export const PRODUCTION = {
  PUBLIC_URL: 'https://bff.example',
  AUTH_URL: 'https://auth.example',
  API_URL: 'https://api.example',
  WS_URL: 'wss://api.example',
  CLIENT_ID: 'client',
  SESSION_SECRETS: 'a-secret-that-must-never-be-printed-anywhere',
  REDIS_URL: 'redis://:password-not-to-print@redis.example',
  TRUST_PROXY: '1',
}

/** What readConfig says about wrong settings. Undefined if none is wrong. */
export function errorOf(settings: Readonly<Record<string, string>>): ConfigError | undefined {
  try {
    readConfig(settings)
    return undefined
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

/** The names of the wrong settings in alphabetical order, each as often as something is wrong with it. */
export function wrongOnes(settings: Readonly<Record<string, string>>): string[] {
  const problems = errorOf(settings)?.problems ?? []
  return problems.map(({ setting }) => setting).toSorted()
}
