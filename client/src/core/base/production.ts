declare const process: { readonly env: { readonly NODE_ENV?: string } }

/**
 * Bundlers replace `import.meta.env` and `process.env.NODE_ENV` where they are written out. Where a browser runs the module
 * unchanged, nothing says that this is no production.
 */
function isProduction(): boolean {
  const isBuilt = (import.meta as { env?: { readonly PROD?: boolean } }).env?.PROD
  if (isBuilt !== undefined) return isBuilt
  try {
    return process.env.NODE_ENV === 'production'
  } catch {
    return true
  }
}

/** @throws Error in a production build, for an entry that is for something else */
export function refuseProduction(entry: string, purpose: string): void {
  if (isProduction()) throw new Error(`trading-bff-client/${entry} is for ${purpose}, and not for production builds`)
}
